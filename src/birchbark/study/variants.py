"""What do the settings of a training change? Variants of one training, measured side by side."""

from __future__ import annotations

from birchbark.errors import InputError
from birchbark.section import Section
from birchbark.study.chains import read_models
from birchbark.study.evidence import EvidenceStudy
from birchbark.study.evidence_choices import EvidenceChoices
from birchbark.train.grid import changed


def read_trainings(section: Section) -> EvidenceStudy:
    """The table [training] of a recipe: a study of evidence whose models are trained for it.

    config: of the training, beside the recipe. variants: each a name, and settings that differ, by
    dotted keys. models: others, measured beside them. evidence: how all are measured.
    """
    path = section.path.parent / section.text("config")
    values = Section.table(path)
    variants = read_models(section.section("models", {}))
    others = len(variants)
    for one in section.sections("variants"):
        name = one.text("name")
        if name in variants:
            raise InputError(f"a second variant {name!r}", where=one.where("name"))
        variants[name] = (changed(values, one.values("settings"), path),)
        one.end()
    if len(variants) == others:
        raise InputError("no variants", where=section.where("variants"))
    choices = EvidenceChoices.of(variants, section.section("evidence", {}))
    section.end()
    return EvidenceStudy(choices)
