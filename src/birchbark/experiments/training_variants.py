"""How does a study compare training settings? As variants, all evaluated in the same way."""

from __future__ import annotations

from birchbark.errors import InputError
from birchbark.experiments.evidence import EvidenceExperiment
from birchbark.experiments.evidence_settings import EvidenceSettings
from birchbark.section import Section
from birchbark.study.models import Models
from birchbark.study.training_chains import Chain, read_models
from birchbark.train.read_config import read_training
from birchbark.train.setting_grid import read_with_settings


def read_trainings(section: Section) -> EvidenceExperiment:
    """Read the table [training] of a recipe: an evidence study that trains its models.

    For the keys config, settings, variants and models see `read_models_and_variants`; the table
    evidence holds the `EvidenceSettings`. Raises InputError if there are no variants.
    """
    models = read_models_and_variants(section)
    if all(isinstance(model, str) for model in models.values()):
        raise InputError("no variants", where=section.where("variants"))
    settings = EvidenceSettings.read_for(Models(models), section.section("evidence", {}))
    section.reject_unknown_keys()
    return EvidenceExperiment(settings)


def read_models_and_variants(section: Section) -> dict[str, str | Chain]:
    """Read the models of a recipe: name → an existing model, or the training runs that make it.

    These keys of `section` are read:
    config: the path of a training configuration, relative to the recipe, or of several, each of
    which starts from the model of the one before.
    settings: changes to the last one for all variants, by dotted keys.
    variants: tables with a name and further settings.
    models: other models to compare; see `read_models`.
    """
    models = read_models(section.section("models", {}))
    if "config" not in section.keys:
        return models
    *earlier, path = (section.path.parent / name for name in section.text_or_texts("config"))
    before = tuple(read_training(Section.table(first), first) for first in earlier)
    config, common = Section.table(path), section.values("settings", {})
    for variant in section.sections("variants"):
        name = variant.text("name")
        if name in models:
            raise InputError(f"two models are called {name!r}", where=variant.where("name"))
        last = read_with_settings(config, common | variant.values("settings"), path)
        models[name] = (*before, last)
        variant.reject_unknown_keys()
    return models
