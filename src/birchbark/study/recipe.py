"""What does a study depend on, besides data and models? All of it as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from birchbark.retrieve.bm25 import BM25
from birchbark.show.table import Column, Group
from birchbark.study.bench import Bench
from birchbark.study.data import CollectionFiles
from birchbark.study.outcome import Outcome


class Experiment(Protocol):
    """One kind of study, with the choices of the recipe that are its own."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names or directories of the checkpoints it needs."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """Paths below the data root of what it needs besides the collections."""
        ...

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of each table it will make."""
        ...

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Measure; `published` figures are put in by others."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that a study depends on, besides data and models.

    name: of the file, without suffix. larger: whether its larger settings were chosen. source: what
    it repeats, and of whom. findings: what people read out of its results, written by hand, a
    paragraph to a line. depth: of all runs. seed: of folds and bootstrap. published: table →
    figures printed by others.
    """

    path: Path
    larger: bool
    kind: str
    title: str
    source: str
    findings: str
    collections: tuple[CollectionFiles, ...]
    measures: tuple[str, ...]
    bm25: BM25
    depth: int
    seed: int
    experiment: Experiment
    published: Mapping[str, tuple[Group, ...]]

    @property
    def name(self) -> str:
        """What files and folders of this study are called."""
        return self.path.stem

    @property
    def files(self) -> tuple[str, ...]:
        """Paths below the data root of all that it reads, each once."""
        named = [file for collection in self.collections for file in collection.files]
        return tuple(dict.fromkeys([*named, *self.experiment.files]))
