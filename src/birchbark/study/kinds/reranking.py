"""What does BERT alone change in the first k documents? The cord paper's cross-encoders.

Its tables 4.6 to 4.8 and A.1, figures 4.2 to 4.8, A.1 and A.2. Nothing is mixed with the first
stage: a study of evidence does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from birchbark.checkpoint.heads import MODES
from birchbark.checkpoint.named import locate
from birchbark.errors import InputError
from birchbark.index.build import Schema
from birchbark.index.reader import Index
from birchbark.records import Run
from birchbark.score.layers import LayerEncoder
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.segment.named import parse_segmenter
from birchbark.show.table import Column
from birchbark.study.bench import Bench
from birchbark.study.data import TestCollection
from birchbark.study.first_stages import first_stages
from birchbark.study.kinds.biencoder_scores import cosines, tell_left
from birchbark.study.kinds.reranking_runs import ToScore, by_chance, score
from birchbark.study.kinds.reranking_tables import RANDOM, Reranked, Reranking, Telling, layout
from birchbark.study.kinds.variants import read_variants
from birchbark.study.models import Models, fingerprint_of
from birchbark.study.outcome import Outcome, check_run_names
from birchbark.study.recipe import Recipe

AS_IT_WAS = "as it was"  # the run of a first stage


@dataclass(frozen=True, slots=True)
class Nearest:
    """A first stage of all documents by the cosine with their field: an embedding's."""

    model: str
    segments: str
    mode: str

    @classmethod
    def read(cls, section: Section) -> Nearest:
        """From the table [reranking.nearest] of a recipe."""
        found = cls(
            section.text("model"),
            section.text("segments", "whole"),
            section.one_of("pooling", MODES, "mean"),
        )
        parse_segmenter(found.segments)
        section.end()
        return found


@dataclass(frozen=True, slots=True)
class RerankingStudy:
    """The choices of this kind.

    compared: models by what rows call them. fields: name → the segments that a document is read as,
    of which the best counts. nearest: a second first stage; None for none. told: what tables and
    plots tell. precision: of the arithmetic.
    """

    compared: Models
    fields: Mapping[str, str]
    nearest: Nearest | None
    told: Reranking
    precision: Precision

    @classmethod
    def read(cls, section: Section) -> RerankingStudy:
        """From the table [reranking] of a recipe; models also by `config` and `variants`."""
        compared = Models(read_variants(section))
        table = section.section("fields")
        fields = {name: table.text(name) for name in table.keys}
        for name, words in fields.items():
            try:
                parse_segmenter(words)
            except InputError as fault:
                raise fault.at(table.where(name)) from None
        if not (compared.named and fields):
            raise InputError("models and fields are needed", where=section.where())
        nearest = Nearest.read(section.section("nearest")) if "nearest" in section.keys else None
        known = [one.value for one in Precision]
        precision = Precision(section.one_of("precision", known, Precision.FP32.value))
        told = Reranking.read(section, tuple(compared.named))
        rows = [f"{model}, {field}" for model in compared.named for field in fields]
        check_run_names([AS_IT_WAS, RANDOM, *rows], section.where())
        section.end()
        return cls(compared, fields, nearest, told, precision)

    @property
    def models(self) -> tuple[str, ...]:
        """All that must be there to score with, or to train from."""
        near = (self.nearest.model,) if self.nearest else ()
        return tuple(dict.fromkeys([*self.compared.needed, *near]))

    @property
    def files(self) -> tuple[str, ...]:
        """What is learnt from."""
        return self.compared.files

    @property
    def _nearest_fingerprint(self) -> dict[str, str]:
        near = self.nearest
        return {near.model: fingerprint_of(near.model)} if near else {}

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        return self.compared.layout() | layout(self.told, measures, tuple(self.fields))

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Train what is trained here; score the first documents; rank them anew, ever more."""
        if self.told.deepest > recipe.depth:
            raise InputError(
                "more documents are to be ranked anew than the first stage ranks",
                where=f"{recipe.path}: depth",
                wanted=f"{self.told.deepest} or more",
                found=str(recipe.depth),
            )
        known = [collection.name for collection in recipe.collections]
        if unknown := [name for name in self.told.judged_only if name not in known]:
            raise InputError(
                f"judged_only names no collection: {unknown[0]}",
                where=str(recipe.path),
                wanted=f"one of {', '.join(known)}",
            )
        collections = [bench.open(files) for files in recipe.collections]
        for one in collections:
            grades = {g for grades in one.qrels.grades.values() for g in grades.values()}
            if max(grades) > self.told.highest:
                raise InputError(
                    "a grade is above the highest that is counted",
                    where=f"collection {one.name}",
                    wanted=f"reranking.highest = {max(grades)}",
                    found=str(self.told.highest),
                )
        made = self.compared.make(bench)
        models = made.places
        found = [one for c in collections for one in self._ranked(recipe, bench, c, models)]
        telling = Telling(self.told, recipe.measures, recipe.seed, found, tuple(self.fields))
        tables, plots = telling.everything()
        return Outcome(
            tables=(*made.tables, *tables),
            plots=(*made.plots, *plots),
            runs={
                f"{one.name}.{one.first.tag}.{tag}": run
                for one in found
                for tag, run in {AS_IT_WAS: one.first, **one.runs(self.told.shown)}.items()
            },
            models=made.fingerprints | self._nearest_fingerprint,
            settings=made.settings,
        )

    def _ranked(
        self, recipe: Recipe, bench: Bench, collection: TestCollection, models: Mapping[str, str]
    ) -> list[Reranked]:
        """One for each first stage of a collection."""
        index = bench.index(collection, Schema("english"))
        firsts = list(first_stages(recipe, lambda: index, collection, rm3=False).values())
        if self.nearest:
            bench.tell(f"{collection.name}: vectors of {self.nearest.segments}")
            firsts.append(self._by_vectors(self.nearest, recipe, bench, collection, index))
        asked = ToScore.of(collection.qrels, firsts, self.told.deepest, index)
        if asked.absent:
            bench.tell(
                f"note: {collection.name}: {asked.absent:,} judged pairs have no document here, "
                "and are not scored"
            )
        scores = {}
        for model, place in models.items():
            with bench.scorer(place, self.precision) as scorer:
                for field, words in self.fields.items():
                    bench.tell(f"{collection.name}: {model} scores {field}")
                    scores[model, field] = score(
                        scorer, parse_segmenter(words), index, collection.queries, asked.documents
                    )
        chance = by_chance(asked.documents, recipe.seed)
        return [
            Reranked(collection.name, collection.qrels, first, scores, chance) for first in firsts
        ]

    def _by_vectors(
        self,
        near: Nearest,
        recipe: Recipe,
        bench: Bench,
        collection: TestCollection,
        index: Index,
    ) -> Run:
        """Documents by their cosine with a query, those that have the field."""
        bench.tell_device("encoders of all layers")
        encoder = LayerEncoder(locate(near.model), (near.mode,))
        found = cosines(encoder, index, parse_segmenter(near.segments), collection.queries)
        tell_left(bench, index, found, encoder)
        return found.run(encoder.poolings[-1], recipe.depth, "cosine")
