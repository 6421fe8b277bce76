"""Which kinds of study are there? A recipe's `kind` names one; its choices are in that table."""

from __future__ import annotations

from collections.abc import Callable

from birchbark.section import Section
from birchbark.study.analyzers import Analyzers
from birchbark.study.evidence import Evidence
from birchbark.study.fields import Fields
from birchbark.study.recipe import Experiment
from birchbark.study.trainings import read_trainings

BY_NAME: dict[str, Callable[[Section], Experiment]] = {
    "analyzers": Analyzers.read,
    "evidence": Evidence.read,
    "fields": Fields.read,
    "training": read_trainings,
}
