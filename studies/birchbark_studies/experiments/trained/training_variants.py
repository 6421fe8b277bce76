"""How does a study compare training settings? As variants, all evaluated in the same way."""

from __future__ import annotations

from birchbark import InputError
from birchbark.section import Section
from birchbark.train.read_config import read_training
from birchbark.train.setting_grid import read_with_settings
from birchbark_studies.experiments.evidence.evidence_experiment import EvidenceExperiment
from birchbark_studies.experiments.evidence.evidence_settings import EvidenceSettings
from birchbark_studies.models import Models


def read_trainings(section: Section) -> EvidenceExperiment:
    """Read the table [training] of a recipe: an evidence study that trains its models.

    For the keys config, settings, variants and models see `read_models_and_variants`; the table
    evidence holds the `EvidenceSettings`, by_fold is the number of folds for each of which a model
    learns from the others. Raises InputError if there are no variants.
    """
    models = read_models_and_variants(section, section.integer("by_fold", 0, minimum=2))
    if not models.chains:
        raise InputError("no variants", where=section.where("variants"))
    settings = EvidenceSettings.read_for(models, section.section("evidence", {}))
    section.reject_unknown_keys()
    return EvidenceExperiment(settings)


def read_models_and_variants(section: Section, folds: int = 0) -> Models:
    """Read the models of a recipe: those that exist, and the training runs that make the others.

    These keys of `section` are read:
    config: the path of a training configuration, relative to the recipe, or of several, each of
    which starts from the model of the one before.
    settings: changes to the last one for all variants, by dotted keys.
    variants: tables with a name and further settings.
    models: other models to compare; see `read_models`.
    seeds: the seeds with which each model is trained, the last run of several.

    folds: the number of folds by which each model is trained; see `Models`.
    """
    seeds = section.integers("seeds", (), minimum=0)
    models = Models.read(section.section("models", {}), seeds, folds)
    if "config" not in section.keys:
        return models
    *earlier, path = (section.path.parent / name for name in section.text_or_texts("config"))
    before = tuple(read_training(Section.table(first), first) for first in earlier)
    config, common = Section.table(path), section.values("settings", {})
    for variant in section.sections("variants"):
        name = variant.text("name")
        if name in (*models.by_name, *models.by_variant):
            raise InputError(f"two models are called {name!r}", where=variant.where("name"))
        settings = common | variant.values("settings")
        if seeds and "seed" in settings:
            raise InputError("a seed beside seeds", where=variant.where("settings"))
        models = models.adding({name: (*before, read_with_settings(config, settings, path))})
        variant.reject_unknown_keys()
    return models
