"""What does a pipeline give, and what does it cost? Stages as users write them, side by side.

Nothing is tuned: each row is what `birchbark rerank --stages` makes of such a file.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from birchbark.checkpoint.named import open_named
from birchbark.device.session import session_on
from birchbark.errors import BirchbarkError, InputError
from birchbark.index.build import Schema
from birchbark.index.reader import Index
from birchbark.pipeline.answer import Work
from birchbark.pipeline.opening import Opener, remembering
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.stage_words import NEEDS, StageWords
from birchbark.records import Query, Run
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.show.table import Column
from birchbark.study.bench import Bench
from birchbark.study.data import TestCollection
from birchbark.study.kinds.pipeline_tables import FIRST, Cost, PipelineRuns, layout, plots, tables
from birchbark.study.kinds.variants import read_variants
from birchbark.study.models import Models
from birchbark.study.outcome import Outcome, run_file_name
from birchbark.study.recipe import Recipe

TIMES = 2  # that a query is ranked, to see how long it takes
ROLES = ("model", "embedding", "duo")  # words of a stage that name a model


@dataclass(frozen=True, slots=True)
class PipelineStudy:
    """The choices of this kind.

    compared: models by what the rows call them. rows: name of a pipeline → its stages. baseline:
    the row that others are compared with; the first stage by default. rm3: whether the first stage
    is expanded. timed: queries of each collection, evenly spread, that are ranked once more by each
    pipeline, with nothing kept, to see how long they take. over: a number among the words of the
    last stages, over which the measures are drawn; empty for none.
    """

    compared: Models
    rows: Mapping[str, tuple[StageWords, ...]]
    baseline: str
    rm3: bool
    timed: int
    over: str

    @classmethod
    def read(cls, section: Section) -> PipelineStudy:
        """From the table [pipelines] of a recipe."""
        named = read_variants(section)
        usual = StageWords().but(section.section("stage", {}))
        rows: dict[str, tuple[StageWords, ...]] = {}
        for one in section.sections("rows"):
            name = one.text("name")
            if name in rows or name == FIRST:
                raise InputError(f"a second row {name!r}", where=one.where("name"))
            rows[name] = tuple(usual.but(stage) for stage in one.sections("stages"))
            if not rows[name]:
                raise InputError("no stages", where=one.where("stages"))
            if run_file_name(name) in map(run_file_name, (FIRST, *list(rows)[:-1])):
                raise InputError("another row's run has this file name", where=one.where("name"))
            one.end()
        if not rows:
            raise InputError("no rows", where=section.where("rows"))
        words = [one for stages in rows.values() for one in stages]
        asked = tuple(dict.fromkeys(name for one in words for name in _models(one)))
        if unused := [name for name in named if name not in asked]:
            raise InputError(
                f"no row uses the model {unused[0]!r}",
                where=section.where("models"),
                wanted=f"one of {', '.join(asked)}",
            )
        found = cls(
            compared=Models({**named, **{name: name for name in asked if name not in named}}),
            rows=rows,
            baseline=section.one_of("baseline", (FIRST, *rows), FIRST),
            rm3=section.truth("rm3", False),
            timed=section.whole("timed", 10, least=1),
            over=section.one_of("over", ("depth", "duo_depth")) if "over" in section.keys else "",
        )
        section.end()
        return found

    @property
    def models(self) -> tuple[str, ...]:
        """All that must be there to rank with, or to train from."""
        return self.compared.needed

    @property
    def files(self) -> tuple[str, ...]:
        """What is learnt from."""
        return self.compared.files

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        return self.compared.layout() | {**layout(measures)}

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Train what is trained here, rank by each pipeline, measure, take the time."""
        opener, given = _Opener(bench), self.compared.given
        for name, stages in self.rows.items():  # faults are told before anything is learnt
            if {model for words in stages for model in _models(words)} <= given.keys():
                opener.rankers(name, stages, given)
        collections = [bench.open(files) for files in recipe.collections]
        made = self.compared.make(bench)
        ranked = [
            self._ranked(opener, made.places, recipe, bench, collection)
            for collection in collections
        ]
        found = tables(ranked, recipe.measures, self.baseline, recipe.seed)
        return Outcome(
            tables=(*made.tables, *found),
            plots=(
                *made.plots,
                *plots(found, recipe.measures, self.baseline, self._over),
            ),
            runs={f"{one.name}.{tag}": run for one in ranked for tag, run in one.runs.items()},
            models=made.fingerprints,
            settings=made.settings,
        )

    @property
    def _over(self) -> Mapping[str, float]:
        """Row → the number over which it is drawn, by rising numbers; of those that have it."""
        last = {name: stages[-1] for name, stages in self.rows.items()}
        found = {
            name: getattr(words, self.over)
            for name, words in last.items()
            if self.over and (words.duo or NEEDS.get(self.over) != "duo")
        }
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def _ranked(
        self,
        opener: _Opener,
        models: Mapping[str, str],
        recipe: Recipe,
        bench: Bench,
        collection: TestCollection,
    ) -> PipelineRuns:
        """All rows on one collection."""
        index = bench.index(collection, Schema("english"))
        stage = FirstStage(recipe.bm25, expansion=RM3() if self.rm3 else None)
        made = collection.run or rank_queries(
            index, collection.queries, stage, depth=recipe.depth, tag=FIRST
        )
        queries = [query for query in collection.queries if query.query_id in made.rankings]
        if not queries:
            raise InputError("the run ranks no judged query", where=f"collection {collection.name}")
        first = _only(made.head(recipe.depth), queries)
        timed = queries[:: max(1, len(queries) // self.timed)][: self.timed]
        found = PipelineRuns(collection.name, collection.qrels, {FIRST: first}, len(timed))
        for name, stages in self.rows.items():
            bench.tell(f"{collection.name}: {name}")
            rankers, works = opener.rankers(name, stages, models), _Works()
            with remembering(rankers, (bench.kept or bench.scratch) / "scores") as kept:
                own = kept.rankers
                found.runs[name] = rerank(index, first, queries, own, tag=name, report=works.add)
            seconds = sum(_quickest(index, first, query, rankers) for query in timed)
            found.costs[name] = Cost(
                seconds=seconds / len(timed),
                parameters=opener.parameters(stages, models),
                pairs=works.total.pairs / len(queries),
                comparisons=works.total.comparisons / len(queries),
            )
        return found


@dataclass(slots=True)
class _Works:
    """The work of all queries."""

    total: Work = field(default_factory=Work)

    def add(self, query_id: str, work: Work) -> None:
        self.total += work


class _Opener:
    """Opens the models of a recipe by what it calls them, each once."""

    def __init__(self, bench: Bench) -> None:
        self._exact = Opener(session=session_on(bench.device))
        self._integer = Opener()  # integers need the processors
        self._sizes: dict[str, int] = {}

    def rankers(
        self, row: str, stages: Sequence[StageWords], models: Mapping[str, str]
    ) -> list[Ranker]:
        """A Ranker for each stage of a row. models: what the recipe calls them → what opens them.

        Raises InputError or CheckpointError, naming the row and the stage.
        """
        found = []
        for number, words in enumerate(stages, 1):
            exact = words.precision == Precision.FP32.value
            opener = self._exact if exact else self._integer
            own: dict[str, Any] = {
                role: models[name] for role in ROLES if (name := getattr(words, role))
            }
            try:
                found.append(opener.ranker(replace(words, **own)))
            except BirchbarkError as fault:
                raise fault.at(f"row {row!r}, stage {number}") from None
        return found

    def parameters(self, stages: Sequence[StageWords], models: Mapping[str, str]) -> int:
        """Of all models of a pipeline."""
        asked = {models[name] for words in stages for name in _models(words)}
        for model in asked - self._sizes.keys():
            self._sizes[model] = open_named(model).parameters
        return sum(self._sizes[model] for model in asked)


def _models(words: StageWords) -> list[str]:
    """What a stage calls its models."""
    return [name for role in ROLES if (name := getattr(words, role))]


def _quickest(index: Index, first: Run, query: Query, rankers: Sequence[Ranker]) -> float:
    """Seconds for one query, models loaded: what else the machine does can only add to them."""
    took = []
    for _ in range(TIMES):
        started = time.perf_counter()
        rerank(index, _only(first, [query]), [query], rankers)
        took.append(time.perf_counter() - started)
    return min(took)


def _only(run: Run, queries: Sequence[Query]) -> Run:
    """The rankings of `queries` alone."""
    return Run({query.query_id: run.rankings[query.query_id] for query in queries}, run.tag)
