"""What do the settings of a training change? Variants of one training, measured side by side."""

from __future__ import annotations

from birchbark.errors import InputError
from birchbark.section import Section
from birchbark.study.chains import Chain, read_models
from birchbark.study.kinds.evidence import EvidenceStudy
from birchbark.study.kinds.evidence_choices import EvidenceChoices
from birchbark.study.models import Models
from birchbark.train.grid import changed


def read_trainings(section: Section) -> EvidenceStudy:
    """The table [training] of a recipe: a study of evidence whose models are trained for it.

    `config`, `variants` and `models` as `read_variants` has them. evidence: how all are measured.
    """
    models = read_variants(section)
    if all(isinstance(how, str) for how in models.values()):
        raise InputError("no variants", where=section.where("variants"))
    choices = EvidenceChoices.of(Models(models), section.section("evidence", {}))
    section.end()
    return EvidenceStudy(choices)


def read_variants(section: Section) -> dict[str, str | Chain]:
    """Name → a model, or the trainings that make it.

    config: of a training, beside the recipe. settings: what differs from it, by dotted keys.
    variants: each a name, and settings besides. models: others, measured beside them.
    """
    found = read_models(section.section("models", {}))
    if "config" not in section.keys:
        return found
    path = section.path.parent / section.text("config")
    values, common = Section.table(path), section.values("settings", {})
    for one in section.sections("variants"):
        name = one.text("name")
        if name in found:
            raise InputError(f"a second variant {name!r}", where=one.where("name"))
        found[name] = (changed(values, common | one.values("settings"), path),)
        one.end()
    return found
