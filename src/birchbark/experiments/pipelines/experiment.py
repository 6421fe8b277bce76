"""How effective are multi-stage pipelines, and what do they cost?

Each row equals the output of `birchbark rerank --stages` with the same stages, except rows with
`stored_vectors`, whose candidates also come from vectors, and rows with a table `tuned`, whose
weights are chosen by cross-validation. Stages read everything unless the recipe sets read = "plan".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.evaluate.rank_measures import parse_rank_measure
from birchbark.experiments.model_experiment import ModelExperiment
from birchbark.experiments.pipelines.loader import PipelineLoader, models_of
from birchbark.experiments.pipelines.tables import FIRST, Cost, PipelineRuns, layout, plots, tables
from birchbark.experiments.pipelines.tuned import TunedWeights, cross_validated
from birchbark.experiments.training_variants import read_models_and_variants
from birchbark.index.build_index import Schema
from birchbark.index.index import Index
from birchbark.index.sharded_writer import open_writer
from birchbark.pipeline.answers.answer import SearchStats
from birchbark.pipeline.dense_engine import open_engine
from birchbark.pipeline.load_rankers import with_score_caches
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import RerankedQuery, rerank
from birchbark.pipeline.stage_options import ALL, NONE, StageOptions
from birchbark.pipeline.upkeep.precompute import precompute_vectors
from birchbark.records import Query, Run
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.score.load_scorer import load_scorer
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark.show.table import Column
from birchbark.study.collections import TestCollection
from birchbark.study.first_stages import read_first_stage
from birchbark.study.models import Models
from birchbark.study.outcome import Outcome, new_row_name
from birchbark.study.recipe import Recipe
from birchbark.study.seeds import distinct, seeds_layout
from birchbark.study.workspace import Workspace

TIMINGS = 2  # measurements per query; the faster one counts
READ_EVERYTHING = StageOptions(
    embedding=NONE, read_segments=ALL, read_documents=ALL, read_pairs=ALL, embed_segments=ALL
)
PLAN = "plan"  # by default, stages read as searches do


@dataclass(frozen=True, slots=True)
class PipelineExperiment(ModelExperiment):
    """The settings of a study of pipelines.

    Attributes:
        rows: Name of a pipeline → its stages.
        baseline: The row with which the others are compared; the first stage by default.
        rm3: Whether the first stage expands queries with RM3.
        first_stages: Row → another first stage, without re-ranking, for comparison. Collections
            with a given run have no such rows.
        segments_of: Collection → how its documents are split, where it differs from `stages`.
        stored_vectors: Names of rows that search an index with the vectors of their embedding: half
            of the candidates are found by them, unless the collection has a run.
        timed: The number of queries per collection, evenly spaced, on which speed is measured. Each
            pipeline ranks them again without cached scores.
        over: A numeric option of the last stage, over which the measures are plotted; empty for
            none.
        shown_as: Row with one of several seeds → the row in the tables that stands for all seeds.
        tuned: Name of a row → the weights that are chosen by cross-validation.
        tune: The measure for which they are chosen.
        folds: The number of folds, for collections without given folds.
    """

    collection_keys = frozenset({"run", "folds"})
    uses_rm3 = True
    rows: Mapping[str, tuple[StageOptions, ...]]
    baseline: str
    rm3: bool
    first_stages: Mapping[str, FirstStage]
    segments_of: Mapping[str, str]
    stored_vectors: frozenset[str]
    timed: int
    over: str
    shown_as: Mapping[str, str]
    tuned: Mapping[str, TunedWeights]
    tune: str
    folds: int

    @classmethod
    def read(cls, section: Section) -> PipelineExperiment:
        """Read the table [pipelines] of a recipe."""
        models = read_models_and_variants(section)
        shown_as: dict[str, str] = {}
        reads_all = section.one_of("read", (ALL, PLAN), ALL) == ALL
        default = READ_EVERYTHING if reads_all else StageOptions()
        default = default.updated(section.section("stage", {}))
        first_stages = _read_first_stages(section)
        rows: dict[str, tuple[StageOptions, ...]] = {}
        tuned: dict[str, TunedWeights] = {}
        stored_vectors: set[str] = set()
        for row in section.sections("rows"):
            name = new_row_name(row, (FIRST, *first_stages, *rows, *shown_as.values()))
            stages = tuple(default.updated(stage) for stage in row.sections("stages"))
            if not stages:
                raise InputError("no stages", where=row.where("stages"))
            by_seed = _by_seed(name, stages, models)
            shown_as |= dict.fromkeys(by_seed, name)
            rows |= by_seed or {name: stages}
            if row.boolean("stored_vectors", False):
                stored_vectors |= set(by_seed or (name,))
            if "tuned" in row.keys:
                if by_seed:
                    raise InputError("seeds cannot be tuned", where=row.where("tuned"))
                tuned[name] = TunedWeights.read(row.section("tuned"), stages)
            row.reject_unknown_keys()
        if not rows:
            raise InputError("no rows", where=section.where("rows"))
        all_stages = [stage for stages in rows.values() for stage in stages]
        used = tuple(
            dict.fromkeys(name for stage in all_stages for name in models_of(stage).values())
        )
        if unused := [name for name in models.by_name if name not in used]:
            raise InputError(
                f"no row uses the model {unused[0]!r}",
                where=section.where("models"),
                wanted=f"one of {', '.join(used)}",
            )
        segments = section.section("segments_of", {})
        experiment = cls(
            compared=replace(
                models,
                by_name={
                    **models.by_name,
                    **{name: name for name in used if name not in models.by_name},
                },
            ),
            rows=rows,
            baseline=section.one_of(
                "baseline", (FIRST, *first_stages, *distinct(rows, shown_as)), FIRST
            ),
            rm3=section.boolean("rm3", False),
            first_stages=first_stages,
            segments_of={name: segments.text(name) for name in segments.keys},
            stored_vectors=frozenset(stored_vectors),
            timed=section.integer("timed", 10, minimum=1),
            over=section.one_of("over", ("depth", "duo_depth")) if "over" in section.keys else "",
            shown_as=shown_as,
            tuned=tuned,
            tune=section.text("tune", defaults.VALIDATION_MEASURE),
            folds=section.integer("folds", defaults.TUNING_FOLDS, minimum=2),
        )
        parse_rank_measure(experiment.tune)
        for segmenter in experiment.segments_of.values():
            parse_segmenter(segmenter)
        section.reject_unknown_keys()
        return experiment

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of each table to its columns."""
        seeds = seeds_layout(self.compared.seeds if self.shown_as else ())
        return self.compared.layout() | layout(measures, self.tuned, self.tune) | seeds

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Train the models, rank with each pipeline, measure effectiveness and speed."""
        recipe.check_names("segments_of", self.segments_of)
        if self.baseline in self.first_stages and any(c.run for c in recipe.collections):
            raise InputError(
                f"the baseline {self.baseline!r} is not computed for a collection with a run",
                where=str(recipe.path),
                wanted="a baseline that all collections have",
            )
        if self.rm3 and len(recipe.rm3.variants) > 1:
            wanted = "one value for each parameter of RM3 in this kind of study"
            raise InputError("RM3 cannot be tuned", where=f"{recipe.path}: rm3", wanted=wanted)
        loader, existing = PipelineLoader(workspace), self.compared.existing
        for name, stages in self.rows.items():  # report errors before any training run
            if {
                model for stage in stages for model in models_of(stage).values()
            } <= existing.keys():
                for variant in (stages, *(self.tuned[name].variants if name in self.tuned else ())):
                    first = loader.rankers(name, variant, existing)[0]
                    if name in self.stored_vectors and first.vector_scorer is None:
                        raise InputError("stored_vectors needs an embedding", where=f"row {name}")
        collections = [workspace.open(files) for files in recipe.collections]
        prepared = self.compared.prepare(workspace)
        ranked = [
            self._rank(loader, prepared.paths, recipe, workspace, collection)
            for collection in collections
        ]
        comparison = recipe.comparison(self.baseline)
        heads = self.layout(recipe.measures)
        made = tables(ranked, comparison, heads, self.shown_as, self.tuned)
        effectiveness, costs = made[:2]
        return prepared.outcome(
            made,
            plots(effectiveness, costs, comparison, self._over),
            {f"{result.name}.{tag}": run for result in ranked for tag, run in result.runs.items()},
        )

    @property
    def _over(self) -> Mapping[str, float]:
        """Return row → its value of the option `over`, ascending. Rows without it are left out."""
        last = {self.shown_as.get(name, name): stages[-1] for name, stages in self.rows.items()}
        numbers = {
            name: getattr(stage, self.over)
            for name, stage in last.items()
            if self.over and (stage.duo or self.over != "duo_depth")
        }
        return dict(sorted(numbers.items(), key=lambda item: item[1]))

    def _rank(
        self,
        loader: PipelineLoader,
        models: Mapping[str, str],
        recipe: Recipe,
        workspace: Workspace,
        collection: TestCollection,
    ) -> PipelineRuns:
        """Rank one collection with all pipelines. models: name → model name or path."""
        index = workspace.index(collection, Schema())
        stage = FirstStage(recipe.bm25, expansion=recipe.rm3.variants[0] if self.rm3 else None)
        run = collection.run or rank_queries(
            index, collection.queries, stage, depth=recipe.depth, tag=FIRST
        )
        queries = [query for query in collection.queries if query.query_id in run.rankings]
        if not queries:
            raise InputError("the run ranks no judged query", where=f"collection {collection.name}")
        first = replace(_select(run.head(recipe.depth), queries), tag=FIRST)
        timed = queries[:: max(1, len(queries) // self.timed)][: self.timed]
        ranked = PipelineRuns(collection.name, collection.qrels, {FIRST: first}, len(timed))
        for name, other in {} if collection.run else self.first_stages.items():
            ranked.runs[name] = rank_queries(index, queries, other, depth=recipe.depth, tag=name)

        def load(name: str, stages: Sequence[StageOptions]) -> list[Ranker]:
            if segments := self.segments_of.get(collection.name):
                stages = [replace(stage, segments=segments) for stage in stages]
            return loader.rankers(name, stages, models)

        def rank(
            searched: Index,
            candidates: Run,
            rankers: Sequence[Ranker],
            add: Callable[[RerankedQuery], None],
        ) -> Run:
            with with_score_caches(rankers, workspace.cache_or_scratch / "scores") as cached:
                return rerank(searched, candidates, queries, cached.rankers, on_query=add)

        for name, stages in self.rows.items():
            workspace.progress(f"{collection.name}: {name}")
            rankers, work = load(name, stages), _TotalWork()
            searched, candidates = index, first
            if name in self.stored_vectors:
                searched = _with_vectors(workspace, collection, rankers[0])
                if not collection.run:
                    engine = open_engine(searched, stage, None, load_scorer, rankers)
                    of_queries = {q.query_id: engine.rank(q.text, recipe.depth) for q in queries}
                    candidates = Run(of_queries, FIRST)
            ranked.runs[name] = replace(rank(searched, candidates, rankers, work.add), tag=name)
            if weights := self.tuned.get(name):
                runs = [
                    rank(searched, candidates, load(name, variant), lambda query: None)
                    for variant in weights.variants
                ]
                qrels = collection.qrels
                folds = collection.folds_or_random(self.folds, recipe.seed)
                ranked.runs[name], ranked.tunings[name] = cross_validated(
                    name, weights, runs, qrels, folds, self.tune
                )
            shown = self.shown_as.get(name, name)
            if shown in ranked.costs:
                continue  # another seed costs the same
            seconds = sum(_time(searched, candidates, query, rankers) for query in timed)
            ranked.costs[shown] = Cost(
                seconds=seconds / len(timed),
                parameters=loader.parameters(stages, models),
                pairs=work.total.pairs / len(queries),
                comparisons=work.total.comparisons / len(queries),
            )
        return ranked


@dataclass(slots=True)
class _TotalWork:
    """Sums the search statistics of all queries."""

    total: SearchStats = field(default_factory=SearchStats)

    def add(self, query: RerankedQuery) -> None:
        self.total += query.stats


def _by_seed(
    name: str, stages: Sequence[StageOptions], models: Models
) -> dict[str, tuple[StageOptions, ...]]:
    """Return a row's name for each seed → its stages; empty if no stage's model has seeds."""
    if not any(model in models.by_variant for s in stages for model in models_of(s).values()):
        return {}
    by_seed = {}
    for number, seed in enumerate(models.seeds):
        of_seed = []
        for stage in stages:
            of_roles: dict[str, Any] = {
                role: models.by_variant[model][number]
                for role, model in models_of(stage).items()
                if model in models.by_variant
            }
            of_seed.append(replace(stage, **of_roles))
        by_seed[f"{name}, seed {seed}"] = tuple(of_seed)
    return by_seed


def _read_first_stages(section: Section) -> dict[str, FirstStage]:
    """Read the tables [[first_stages]], each with a name."""
    stages: dict[str, FirstStage] = {}
    for table in section.sections("first_stages", []):
        name = new_row_name(table, (FIRST, *stages))
        stages[name] = read_first_stage(table)
        table.reject_unknown_keys()
    return stages


def _with_vectors(workspace: Workspace, collection: TestCollection, ranker: Ranker) -> Index:
    """Build an index of the collection with the vectors that the ranker uses."""
    embedding = ranker.vector_scorer
    assert embedding
    vectors = precompute_vectors(embedding, ranker.segmenter, embedding.name)
    index = workspace.index(collection, Schema(), extended_by=f"vectors {vectors.schema.config}")
    workspace.progress(f"{collection.name}: computing vectors")
    with open_writer(index.directory) as writer:
        vectors.attach(writer)
    return Index(index.directory)


def _time(index: Index, first: Run, query: Query, rankers: Sequence[Ranker]) -> float:
    """Measure the seconds for one query: the minimum, because other load only adds time."""
    seconds = []
    for _ in range(TIMINGS):
        started = time.perf_counter()
        rerank(index, _select(first, [query]), [query], rankers)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _select(run: Run, queries: Sequence[Query]) -> Run:
    """Return the run with only the rankings for `queries`."""
    return Run({query.query_id: run.rankings[query.query_id] for query in queries}, run.tag)
