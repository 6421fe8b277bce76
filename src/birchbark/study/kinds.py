"""Which kinds of study are there? A recipe's `kind` names one; its choices are in that table."""

from __future__ import annotations

from collections.abc import Callable

from birchbark.section import Section
from birchbark.study.analyzers import Analyzers
from birchbark.study.fields import Fields
from birchbark.study.recipe import Experiment

BY_NAME: dict[str, Callable[[Section], Experiment]] = {
    "analyzers": Analyzers.read,
    "fields": Fields.read,
}
