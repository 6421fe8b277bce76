"""What does a recipe contain, and what must each kind of study provide?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from birchbark import InputError
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.rm3 import RM3
from birchbark.show.table import Column, Group
from birchbark_studies.collections import CollectionFiles
from birchbark_studies.comparison import Comparison
from birchbark_studies.outcome import Outcome
from birchbark_studies.training_chains import Chain, chain_settings
from birchbark_studies.workspace import Workspace


class Experiment(ABC):
    """A kind of study with its settings: the part of a recipe that differs between kinds.

    Attributes:
        collection_keys: The keys `run` and `folds` of a collection, as far as this kind uses them.
        uses_rm3: Whether this kind uses the table [rm3] of a recipe.
        uses_first_stage: Whether `bm25` and `depth` of a recipe, or a run, are used.
        uses_measures: Whether this kind measures rankings, so that a recipe must name measures.
        uses_collections: Whether this kind reads collections, so that a recipe must name some.
    """

    __slots__ = ()
    collection_keys: ClassVar[frozenset[str]] = frozenset()
    uses_rm3: ClassVar[bool] = False
    uses_first_stage: ClassVar[bool] = True
    uses_measures: ClassVar[bool] = True
    uses_collections: ClassVar[bool] = True

    @property
    def reads_texts(self) -> bool:
        """Whether queries and documents are read even if a run is given; true by default."""
        return True

    @property
    def models(self) -> tuple[str, ...]:
        """The names or directories of the checkpoints that must exist; none by default."""
        return ()

    @property
    def files(self) -> tuple[str, ...]:
        """The data files besides the collections, as paths below the data root; none by default."""
        return ()

    @property
    def chains(self) -> Mapping[str, Chain]:
        """The models that the study trains: name → training runs; none by default."""
        return {}

    @property
    def trainings(self) -> Mapping[str, Any]:
        """Map the name of each training configuration to its settings, which decide the results.

        By default, those of the models that the study trains.
        """
        return {name: chain_settings(chain) for name, chain in self.chains.items()}

    def documents_read(self, collection: CollectionFiles) -> int | None:
        """Return how many documents models read for each query, all models together.

        None if the data decides; 0, the default, if no model reads documents for a query.
        """
        return 0

    def times_encoded(self, collection: CollectionFiles) -> int:
        """Return how many times all documents are read to compute their vectors; 0 by default."""
        return 0

    @abstractmethod
    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of each table that `run` makes to its columns."""

    @abstractmethod
    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Run the study. `run_study` adds the published figures."""


@dataclass(frozen=True, slots=True)
class RM3Choices:
    """The parameters of RM3 to try, and the measure by which they are chosen for each fold."""

    variants: tuple[RM3, ...]
    measure: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """All settings of a study.

    Attributes:
        path: The recipe file.
        larger: Whether the settings in its table [larger] are applied.
        settings: A hash of what decides the results: everything but title, source, findings and
            published figures, and of [larger] only what is applied.
        kind: The kind of study, a key of `KINDS`.
        source: The publication that the study reproduces.
        demonstration: How much the publication trains, in words, if that is far more than here;
            empty otherwise. See `demonstration_note`.
        findings: The interpretation of the results, written by hand, one paragraph per line. Its
            numbers are references to cells; see `fill_in`.
        depth: The number of documents per query in all runs.
        seed: The seed for folds, bootstrap and random scores.
        significance_level: A difference is significant if its corrected p is below it.
        bonferroni: Whether p is corrected for the number of comparisons.
        published: Table → figures quoted from the literature.
    """

    path: Path
    larger: bool
    settings: str
    kind: str
    title: str
    source: str
    demonstration: str
    findings: str
    collections: tuple[CollectionFiles, ...]
    measures: tuple[str, ...]
    bm25: BM25
    rm3: RM3Choices
    depth: int
    seed: int
    significance_level: float
    bonferroni: bool
    experiment: Experiment
    published: Mapping[str, tuple[Group, ...]]

    @property
    def name(self) -> str:
        """The file name without suffix, which is also the name of the results folder."""
        return self.path.stem

    @property
    def files(self) -> tuple[str, ...]:
        """All data files that the study reads, as paths below the data root, without duplicates."""
        files = [file for collection in self.collections for file in collection.files]
        return tuple(dict.fromkeys([*files, *self.experiment.files]))

    def comparison(self, baseline: str, measures: tuple[str, ...] = ()) -> Comparison:
        """Return how runs are compared with `baseline`. measures: by default the recipe's."""
        graded = [
            f"In {collection.name}, documents are relevant from grade {collection.relevant} on, "
            "but nDCG counts every grade."
            for collection in self.collections
            if collection.relevant > 1
        ]
        return Comparison(
            measures or self.measures,
            baseline,
            self.seed,
            self.significance_level,
            self.bonferroni,
            " ".join(graded),
        )

    def check_depth(self, reranked: int) -> None:
        """Raise InputError if more documents are re-ranked than the first stage ranks."""
        if reranked > self.depth:
            raise InputError(
                "the first stage ranks fewer documents than are re-ranked",
                where=f"{self.path}: depth",
                wanted=f"{reranked} or more",
                found=str(self.depth),
            )

    def check_names(self, key: str, names: Iterable[str]) -> None:
        """Raise InputError if `key` of the recipe names an unknown collection."""
        known = [collection.name for collection in self.collections]
        for name in names:
            if name not in known:
                raise InputError(
                    f"{key} names an unknown collection",
                    where=str(self.path),
                    wanted=f"one of {', '.join(known)}",
                    found=name,
                )
