"""What does a pipeline give, and what does it cost? Stages as users write them, side by side.

Nothing is tuned: each row is what `birchbark rerank --stages` makes of such a file.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from birchbark.device.session import session_on
from birchbark.errors import InputError
from birchbark.index.build import Schema
from birchbark.pipeline.answer import Work
from birchbark.pipeline.opening import Opener, remembering
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.stage_words import StageWords
from birchbark.records import Query, Run
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.score.checkpoint import Checkpoint
from birchbark.score.model import locate
from birchbark.score.precision import Precision
from birchbark.score.session import NewSession
from birchbark.section import Section
from birchbark.show.table import Column
from birchbark.study.bench import Bench
from birchbark.study.chain_tables import COLUMNS, trained_plots, trained_table
from birchbark.study.chains import Chain, bases, learnt_files, settings_of, train_all
from birchbark.study.data import TestCollection
from birchbark.study.outcome import Outcome
from birchbark.study.pipeline_tables import FIRST, Cost, PipelineRuns, layout, plots, tables
from birchbark.study.recipe import Recipe
from birchbark.study.variants import read_variants

ROLES = ("model", "embedding", "duo")  # words of a stage that name a model


@dataclass(frozen=True, slots=True)
class PipelineStudy:
    """The choices of this kind.

    named: what the rows call them → models, or trainings that make them. rows: name of a pipeline →
    its stages. baseline: the row that others are compared with; the first stage by default. rm3:
    whether the first stage is expanded. timed: queries of each collection, evenly spread, that are
    ranked once more by each pipeline, with nothing kept, to see how long they take. over: a number
    among the words of the last stages, over which the measures are drawn; empty for none.
    """

    named: Mapping[str, str | Chain]
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
            one.end()
        if not rows:
            raise InputError("no rows", where=section.where("rows"))
        found = cls(
            named=named,
            rows=rows,
            baseline=section.one_of("baseline", (FIRST, *rows), FIRST),
            rm3=section.truth("rm3", False),
            timed=section.whole("timed", 10, least=1),
            over=section.one_of("over", ("depth", "duo_depth")) if "over" in section.keys else "",
        )
        section.end()
        return found

    @property
    def _chains(self) -> Mapping[str, Chain]:
        return {name: how for name, how in self.named.items() if not isinstance(how, str)}

    @property
    def _asked(self) -> tuple[str, ...]:
        """What the rows call their models, each once."""
        words = [one for stages in self.rows.values() for one in stages]
        names = [name for one in words for role in ROLES if (name := getattr(one, role))]
        return tuple(dict.fromkeys(names))

    @property
    def models(self) -> tuple[str, ...]:
        """All that must be there to rank with, or to train from."""
        found = [self.named.get(name, name) for name in self._asked]
        given = [model for model in found if isinstance(model, str)]
        return tuple(dict.fromkeys([*given, *bases(self._chains.values())]))

    @property
    def files(self) -> tuple[str, ...]:
        """What is learnt from."""
        return learnt_files(self._chains.values())

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        trained = {"trained": COLUMNS} if self._chains else {}
        return trained | {**layout(measures)}

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Train what is trained here, rank by each pipeline, measure, take the time."""
        collections = [bench.open(files) for files in recipe.collections]
        made = train_all(self._chains, bench)
        models = {
            name: str(made[name].model) if name in made else str(self.named.get(name, name))
            for name in self._asked
        }
        ranked = [self._ranked(models, recipe, bench, collection) for collection in collections]
        marks = {name: Checkpoint.open(locate(m)).fingerprint for name, m in models.items()}
        found = tables(ranked, recipe.measures, self.baseline, recipe.seed, self.timed)
        return Outcome(
            tables=(*((trained_table(made),) if made else ()), *found),
            plots=(
                *(trained_plots(made) if made else ()),
                *plots(found, recipe.measures, self.baseline, self._over),
            ),
            runs={f"{one.name}.{tag}": run for one in ranked for tag, run in one.runs.items()},
            models=marks,
            settings=settings_of(made),
        )

    @property
    def _over(self) -> Mapping[str, float]:
        """Row → the number over which it is drawn; the first stage has none."""
        if not self.over:
            return {}
        return {name: getattr(stages[-1], self.over) for name, stages in self.rows.items()}

    def _ranked(
        self, models: Mapping[str, str], recipe: Recipe, bench: Bench, collection: TestCollection
    ) -> PipelineRuns:
        """All rows on one collection."""
        index = bench.index(collection, Schema("english"))
        stage = FirstStage(recipe.bm25, expansion=RM3() if self.rm3 else None)
        made = collection.run or rank_queries(
            index, collection.queries, stage, depth=recipe.depth, tag=FIRST
        )
        queries = [query for query in collection.queries if query.query_id in made.rankings]
        first = _only(made.head(recipe.depth), queries)
        timed = queries[:: max(1, len(queries) // self.timed)][: self.timed]
        found = PipelineRuns(collection.name, collection.qrels, {FIRST: first})
        for name, stages in self.rows.items():
            bench.tell(f"{collection.name}: {name}")
            own = [_opened(words, models) for words in stages]
            opener, work = Opener(session=_session(own, bench)), Work()
            rankers = [opener.ranker(words) for words in own]

            def add(query_id: str, done: Work) -> None:
                nonlocal work
                work += done

            with remembering(rankers, (bench.kept or bench.scratch) / "scores") as kept:
                run = rerank(index, first, queries, kept.rankers, tag=name, report=add)
            started = time.perf_counter()
            rerank(index, _only(first, timed), timed, rankers)
            found.runs[name] = run
            found.costs[name] = Cost(
                parameters=sum(Checkpoint.open(locate(m)).parameters for m in _models(own)),
                pairs=work.pairs / len(queries),
                comparisons=work.comparisons / len(queries),
                seconds=(time.perf_counter() - started) / len(timed),
            )
        return found


def _opened(words: StageWords, models: Mapping[str, str]) -> StageWords:
    """`words`, with what opens each model in the place of what the recipe calls it."""
    found: dict[str, Any] = {r: models[name] for r in ROLES if (name := getattr(words, r))}
    return replace(words, **found)


def _session(stages: Sequence[StageWords], bench: Bench) -> NewSession | None:
    """What runs the models: the bench's device, but integers need the processors."""
    exact = all(words.precision == Precision.FP32.value for words in stages)
    return session_on(bench.device) if exact else None


def _models(stages: Sequence[StageWords]) -> set[str]:
    """All models that the stages open, each once."""
    return {name for words in stages for role in ROLES if (name := getattr(words, role))}


def _only(run: Run, queries: Sequence[Query]) -> Run:
    """The rankings of `queries` alone."""
    return Run({query.query_id: run.rankings[query.query_id] for query in queries}, run.tag)
