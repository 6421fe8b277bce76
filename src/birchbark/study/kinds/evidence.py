"""What does the evidence of sentences add to the first stage? Models side by side, weights tuned.

Equation 3.2 of the birch paper: a · s_doc + (1 − a) · Σ w_i · s_i over a document's best segments,
w_1 = 1; a and the other w_i are those with the best value on the other folds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from birchbark.errors import InputError
from birchbark.evaluate.folds import make_folds
from birchbark.section import Section
from birchbark.show.table import Column
from birchbark.study.bench import Bench
from birchbark.study.data import CollectionFiles, TestCollection
from birchbark.study.kinds.evidence_choices import EvidenceChoices
from birchbark.study.kinds.evidence_runs import rank_by_evidence
from birchbark.study.kinds.evidence_tables import layout, measured, plots, tables
from birchbark.study.kinds.evidence_topics import look
from birchbark.study.outcome import Outcome
from birchbark.study.recipe import Recipe


@dataclass(frozen=True, slots=True)
class EvidenceStudy:
    """A study of this kind, by its choices."""

    choices: EvidenceChoices

    @classmethod
    def read(cls, section: Section) -> EvidenceStudy:
        """From the table [evidence] of a recipe."""
        return cls(EvidenceChoices.read(section))

    @property
    def models(self) -> tuple[str, ...]:
        """All that must be there to score with, or to train from."""
        return self.choices.models

    @property
    def files(self) -> tuple[str, ...]:
        """What is learnt from, and scores of others."""
        return self.choices.files

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        return self.choices.compared.layout() | {**layout(self.choices, measures)}

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Train what is trained here, rank, score, tune, measure."""
        choices = self.choices
        self._check_collections(recipe)
        collections = [self._open(files, recipe, bench) for files in recipe.collections]
        made = choices.compared.make(bench)
        models = made.places
        ranked = [
            rank_by_evidence(choices, models, recipe, bench, collection)
            for collection in collections
        ]
        whole = measured(choices, ranked, recipe.measures)
        found = tables(choices, ranked, whole, recipe.measures, recipe.seed)
        looked = look(choices, ranked, whole, models)
        return Outcome(
            tables=(*made.tables, *found),
            plots=(
                *made.plots,
                *plots(choices, found, ranked, recipe.measures),
                *looked.plots,
            ),
            runs={
                f"{one.name}.{run.tag}": run
                for one in ranked
                for run in (*one.runs.values(), *list(one.pruned.values())[1:])
            },
            models=made.fingerprints,
            settings=made.settings,
            topics=looked.topics,
            pages=looked.pages,
        )

    def _open(self, files: CollectionFiles, recipe: Recipe, bench: Bench) -> TestCollection:
        """A collection with its folds, before any work is done on others."""
        collection = bench.open(files)
        if collection.folds:
            return collection
        dealt = make_folds(collection.qrels.grades, self.choices.folds, recipe.seed)
        return replace(collection, folds=dealt)

    def _check_collections(self, recipe: Recipe) -> None:
        """Raise InputError where what is chosen cannot be had of a collection."""
        choices = self.choices
        for collection in recipe.collections:
            if (choices.lengths or choices.looked) and not collection.queries:
                raise InputError(
                    "lengths and looked need queries",
                    where=f"{recipe.path}: collection {collection.name}",
                )
        known = [collection.name for collection in recipe.collections]
        for name in (*choices.segments_of, *choices.depth_of):
            if name not in known:
                raise InputError(
                    "segments_of or depth_of names a collection that the recipe has not",
                    where=str(recipe.path),
                    wanted=f"one of {', '.join(known)}",
                    found=name,
                )
