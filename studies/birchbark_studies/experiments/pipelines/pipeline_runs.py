"""How is a collection ranked by pipelines, and what do they cost?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from birchbark import (
    FirstStage,
    Index,
    Query,
    Ranker,
    Run,
    load_scorer,
    rank_queries,
    rerank,
)
from birchbark.index.build_index import Schema
from birchbark.index.sharded_writer import open_writer
from birchbark.pipeline.answers.answer import SearchStats
from birchbark.pipeline.load_rankers import with_score_caches
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.rerank import RerankedQuery
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Ranking
from birchbark.score.scorer import Scorer
from birchbark_studies.collections import TestCollection
from birchbark_studies.experiments.pipelines.loader import PipelineLoader
from birchbark_studies.experiments.pipelines.pipeline_tables import (
    FIRST,
    TIMED_SECONDS,
    Cost,
    PipelineRuns,
)
from birchbark_studies.experiments.pipelines.rows import STATIC, PipelineRows, Stages
from birchbark_studies.experiments.pipelines.tuned import cross_validated
from birchbark_studies.recipe import Recipe
from birchbark_studies.workspace import WAIT, Workspace

TIMINGS = 2  # measurements per query; the faster one counts


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """How collections are ranked.

    Attributes:
        rows: The pipelines.
        first_stages: Row → another first stage, without re-ranking, for comparison.
        segments_of: Collection → how its documents are split, where it differs from the stages.
        timed: The number of queries per collection, evenly spaced, on which speed is measured; of
            slow rows, only the first of these, as many as begin within TIMED_SECONDS.
        tune: The measure for which weights are chosen.
        folds: The number of folds, for collections without given folds.
    """

    rows: PipelineRows
    first_stages: Mapping[str, FirstStage]
    segments_of: Mapping[str, str]
    timed: int
    tune: str
    folds: int


class CollectionRanker:
    """Ranks one collection with all pipelines.

    settings: as above. loader: loads the models. models: name → model name or path.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        loader: PipelineLoader,
        models: Mapping[str, str],
        recipe: Recipe,
        workspace: Workspace,
        collection: TestCollection,
    ) -> None:
        """Rank with the first stages. Raises InputError if no judged query is ranked."""
        self._settings, self._loader, self._models = settings, loader, models
        self._recipe, self._workspace, self._collection = recipe, workspace, collection
        self._index = index = workspace.index(collection, Schema())
        self._with_vectors: dict[str, Index] = {}
        self._stage = FirstStage(recipe.bm25)
        run = collection.run or rank_queries(
            index, collection.queries, self._stage, depth=recipe.depth, tag=FIRST
        )
        self._queries = [query for query in collection.queries if query.query_id in run.rankings]
        self._first = replace(_select(run.head(recipe.depth), self._queries), tag=FIRST)
        step = max(1, len(self._queries) // settings.timed)
        self._timed = self._queries[::step][: settings.timed]
        runs = {FIRST: self._first}
        for name, other in {} if collection.run else settings.first_stages.items():
            runs[name] = rank_queries(index, self._queries, other, depth=recipe.depth, tag=name)
        self._ranked = PipelineRuns(collection.name, collection.qrels, runs, len(self._timed))

    def rank(self) -> PipelineRuns:
        """Rank with all pipelines, and measure what they cost."""
        for name, stages in self._settings.rows.stages.items():
            self._workspace.progress(f"{self._collection.name}: {name}")
            self._rank_row(name, stages)
        return self._ranked

    def _rank_row(self, name: str, stages: Stages) -> None:
        """Add the run of a pipeline, and its cost unless that of another seed is known."""
        rankers, work = self._load(name, stages), list[SearchStats]()
        searched = self._searched(name, rankers)
        run = self._rerank(searched, rankers, lambda query: work.append(query.stats))
        self._ranked.runs[name] = replace(run, tag=name)
        if name in self._settings.rows.tuned:
            self._tune(name, searched)
        shown = self._settings.rows.shown_as.get(name, name)
        if shown in self._ranked.costs:
            return  # another seed costs the same
        count, seconds, started = len(self._queries), list[float](), time.perf_counter()
        for query in self._timed:
            seconds.append(_time(searched, query, rankers))
            if time.perf_counter() - started > TIMED_SECONDS:
                break
        total = sum(work, SearchStats())
        self._ranked.costs[shown] = Cost(
            seconds=sum(seconds) / len(seconds),
            parameters=self._loader.parameters(
                stages,
                self._models,
                static=self._settings.rows.vectors.get(name) == STATIC,
            ),
            pairs=total.pairs / count,
            comparisons=total.comparisons / count,
        )

    def _load(self, name: str, stages: Stages) -> list[Ranker]:
        if segments := self._settings.segments_of.get(self._collection.name):
            stages = tuple(replace(stage, segments=segments) for stage in stages)
        return self._loader.rankers(name, stages, self._models)

    def _searched(self, name: str, rankers: Sequence[Ranker]) -> _Searched:
        """Return what a row re-ranks."""
        kind = self._settings.rows.vectors.get(name)
        if kind is None:
            return _Searched(self._index, self._first)
        ranker = rankers[0]
        scorer = ranker.static if kind == STATIC else ranker.vector_scorer
        index = self._index_with_vectors(scorer, ranker)
        if self._collection.run:
            return _Searched(index, self._first)
        engine = open_engine(index, self._stage, None, load_scorer, rankers)
        candidates, deeper = (
            Run({q.query_id: engine.rank(q.text, count) for q in self._queries}, FIRST)
            for count in (ranker.depth, self._recipe.depth)
        )
        return _Searched(index, candidates, deeper)

    def _index_with_vectors(self, embedding: Scorer | None, ranker: Ranker) -> Index:
        """Return the index with the vectors of the ranker's segments, which are computed once."""
        assert embedding
        workspace = self._workspace
        vectors = precompute_vectors(embedding, ranker.segmenter, embedding.name)
        key = f"vectors {vectors.schema.config}"
        if key not in self._with_vectors:
            index = workspace.index(self._collection, Schema(), extended_by=key)
            workspace.progress(f"{self._collection.name}: computing vectors")
            with workspace.alone(index.directory), open_writer(index.directory) as writer:
                vectors.attach(writer)
            self._with_vectors[key] = Index(index.directory)
        return self._with_vectors[key]

    def _rerank(
        self,
        searched: _Searched,
        rankers: Sequence[Ranker],
        add: Callable[[RerankedQuery], None] = lambda query: None,
    ) -> Run:
        scores = self._workspace.cache_or_scratch / "scores"
        with with_score_caches(rankers, scores, wait=WAIT) as cached:
            run = rerank(
                searched.index, searched.candidates, self._queries, cached.rankers, on_query=add
            )
        return _followed(run, searched.deeper, self._recipe.depth) if searched.deeper else run

    def _tune(self, name: str, searched: _Searched) -> None:
        """Rank with all weights that are tried, and keep the best ones of the other folds."""
        weights, collection = self._settings.rows.tuned[name], self._collection
        runs = [self._rerank(searched, self._load(name, variant)) for variant in weights.variants]
        folds = collection.folds_or_random(self._settings.folds, self._recipe.seed)
        self._ranked.runs[name], self._ranked.tunings[name] = cross_validated(
            name, weights, runs, collection.qrels, folds, self._settings.tune
        )


@dataclass(frozen=True, slots=True)
class _Searched:
    """What a row re-ranks.

    candidates: at least as many documents per query as a search would choose from. deeper: what a
    search for more would find, of which the others follow; half of each are found by vectors, so
    that the best of the one are not those of the other. None if `candidates` has all.
    """

    index: Index
    candidates: Run
    deeper: Run | None = None


def _followed(run: Run, deeper: Run, depth: int) -> Run:
    """Return the rankings of `run`, followed by other documents of `deeper`, `depth` in all."""
    rankings = {}
    for query_id, ranking in run.rankings.items():
        included = set(ranking.doc_ids)
        others = [d for d in deeper.rankings[query_id].doc_ids if d not in included]
        others = others[: depth - len(ranking)]
        lowest = float(ranking.scores[-1]) if len(ranking) else 0.0
        below = [lowest - number for number in range(1, len(others) + 1)]
        rankings[query_id] = Ranking.of(
            [*ranking.doc_ids, *others], [*ranking.scores.tolist(), *below]
        )
    return Run(rankings, run.tag)


def _time(searched: _Searched, query: Query, rankers: Sequence[Ranker]) -> float:
    """Measure the seconds for one query: the minimum, because other load only adds time."""
    seconds = []
    for _ in range(TIMINGS):
        for ranker in rankers:
            ranker.forget_vectors()
        started = time.perf_counter()
        rerank(searched.index, _select(searched.candidates, [query]), [query], rankers)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _select(run: Run, queries: Sequence[Query]) -> Run:
    """Return the run with only the rankings for `queries`."""
    return Run({query.query_id: run.rankings[query.query_id] for query in queries}, run.tag)
