"""Do other words for a query find more? Equation 5.1 of the cord paper, beside RM3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from birchbark.checkpoint.named import locate
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.index.build import Schema
from birchbark.index.reader import Index
from birchbark.records import Query, Rewording, Run
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.query import reworded_terms
from birchbark.score.masked import MaskedModel
from birchbark.score.rewording import check_rewording, reword
from birchbark.section import Section
from birchbark.show.table import Column, Group, Table
from birchbark.study.bench import Bench
from birchbark.study.comparison import FIGURES, compared, difference_dots, measure_columns
from birchbark.study.data import TestCollection
from birchbark.study.first_stages import BM25, FIRST_STAGES, first_stages
from birchbark.study.models import Models
from birchbark.study.outcome import Outcome, check_run_names
from birchbark.study.recipe import Recipe

Reworded = Mapping[str, list[Rewording]]  # query_id → the likeliest first


@dataclass(frozen=True, slots=True)
class RewordingStudy:
    """The choices of this kind.

    compared: masked language models by what rows call them. counts: how many rewordings of a query
    are added; shares: what each counts, times how near it is. Every count is tried with every
    share.
    """

    compared: Models
    counts: tuple[int, ...]
    shares: tuple[float, ...]

    @classmethod
    def read(cls, section: Section) -> RewordingStudy:
        """From the table [rewording] of a recipe."""
        compared = Models.read(section.section("models"))
        if not compared.named:
            raise InputError("no models", where=section.where("models"))
        counts = section.wholes("counts", (1, 3), least=1)
        shares = section.numbers("shares", (1.0,))
        if shares[0] <= 0 or shares[-1] > 1:
            raise InputError(
                "out of range", where=section.where("shares"), wanted="above 0, and up to 1"
            )
        section.end()
        found = cls(compared, counts, shares)
        tags = [found.row(name, c, s) for name in compared.named for c in counts for s in shares]
        check_run_names([*FIRST_STAGES, *tags], section.where())
        return found

    @staticmethod
    def row(name: str, count: int, share: float) -> str:
        """What a row is called: so many rewordings by a model, each with this share."""
        return f"{name}, {count} × {share:g}"

    @property
    def models(self) -> tuple[str, ...]:
        """All that must be there to guess words with, or to train from."""
        return self.compared.needed

    @property
    def files(self) -> tuple[str, ...]:
        """What is learnt from."""
        return self.compared.files

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        return {**self.compared.layout(), "rankings": measure_columns(measures)}

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Train what is trained here, reword, rank, compare."""
        if given := [files.name for files in recipe.collections if files.run]:
            raise InputError(
                "other words need a first stage of ours",
                where=f"{recipe.path}: collection {given[0]}",
                remedy="leave out its run",
            )
        collections = [bench.open(files) for files in recipe.collections]
        made = self.compared.make(bench)
        runs = {c.name: self._ranked(recipe, bench, c, made.places) for c in collections}
        family = sum(len(some) - 1 for some in runs.values()) * len(recipe.measures)
        groups = []
        for collection in collections:
            results = [
                measure(collection.qrels, run, recipe.measures)
                for run in runs[collection.name].values()
            ]
            groups.append(Group(collection.name, compared(results, BM25, recipe.seed, family)))
        note = FIGURES.format(baseline=BM25, family=family)
        table = Table(
            *("rankings", "Queries and other words for them", "ranked by"),
            *(measure_columns(recipe.measures), tuple(groups), note),
        )
        dots = [
            difference_dots(f"differences-{n}", group, recipe.measures, BM25)
            for n, group in enumerate(groups, 1)
        ]
        return Outcome(
            tables=(*made.tables, table),
            plots=(*made.plots, *dots),
            runs={f"{name}.{tag}": run for name, some in runs.items() for tag, run in some.items()},
            models=made.fingerprints,
            settings=made.settings,
        )

    def _ranked(
        self, recipe: Recipe, bench: Bench, collection: TestCollection, models: Mapping[str, str]
    ) -> dict[str, Run]:
        """Row → run: BM25, with RM3, and with the rewordings of each model."""
        index = bench.index(collection, Schema("english"))
        runs = first_stages(recipe, lambda: index, collection, rm3=True)
        for name, model in models.items():
            bench.tell(f"{collection.name}: {name} rewords")
            bench.tell_device("masked models")
            masked = MaskedModel(locate(model))
            check_rewording(masked, collection.queries)
            found = {
                query.query_id: reword(masked, query.text, index.analyzer.terms, self.counts[-1])
                for query in collection.queries
            }
            if fewer := sum(len(some) < self.counts[-1] for some in found.values()):
                bench.tell(f"note: {fewer:,} queries have fewer than {self.counts[-1]} rewordings")
            for count in self.counts:
                for share in self.shares:
                    tag = self.row(name, count, share)
                    runs[tag] = _with(found, index, collection.queries, recipe, count, share, tag)
        return runs


def _with(
    found: Reworded,
    index: Index,
    queries: tuple[Query, ...],
    recipe: Recipe,
    count: int,
    share: float,
    tag: str,
) -> Run:
    """BM25 of each query and of its first `count` rewordings."""
    rankings = {}
    for query in queries:
        others = found[query.query_id][:count]
        weights = reworded_terms(index.analyzer, query.text, others, share)
        rankings[query.query_id] = rank_query(index, weights, FirstStage(recipe.bm25), recipe.depth)
    return Run(rankings, tag)
