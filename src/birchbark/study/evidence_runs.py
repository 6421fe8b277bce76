"""How is one collection ranked by the first stage and the evidence of several models?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.evaluate.folds import make_folds
from birchbark.evaluate.tune import Candidates, Tuning, tune
from birchbark.index.build import Schema
from birchbark.index.reader import Index
from birchbark.pipeline.race import Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import with_rest
from birchbark.pipeline.search import settle
from birchbark.records import Qrels, Query, Ranking, Run
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.score.model import load_scorer
from birchbark.score.remembering import Remembering
from birchbark.score.scorer import Scorer
from birchbark.score.store import ScoreStore
from birchbark.segment.named import parse_segmenter
from birchbark.study.bench import Bench
from birchbark.study.data import TestCollection

if TYPE_CHECKING:
    from birchbark.study.evidence import Evidence
    from birchbark.study.recipe import Recipe

FIRST_STAGES = THEIRS, BM25, EXPANDED = "first stage", "BM25", "BM25+RM3"
Parts = Mapping[str, Candidates]  # query_id → scores of the first stage and of the best segments


@dataclass(frozen=True, slots=True)
class EvidenceRuns:
    """What was ranked on one collection. baseline: the run that candidates come from.

    tunings: model → how its weights were chosen, with the first stage.
    """

    name: str
    qrels: Qrels
    baseline: str
    runs: Mapping[str, Run]
    tunings: Mapping[str, Tuning]


def rank_by_evidence(
    choices: Evidence, recipe: Recipe, bench: Bench, collection: TestCollection
) -> EvidenceRuns:
    """All runs of one collection."""
    index = bench.index(collection, Schema("english"))
    runs = _first_stages(choices, recipe, index, collection)
    baseline = list(runs)[-1]
    first, tunings = runs[baseline], {}
    folds = make_folds(collection.qrels.grades, choices.folds, recipe.seed)
    for name, model in choices.named.items():
        segments = choices.segments_of.get(collection.name, choices.segments)
        bench.tell(f"{collection.name}: {name} scores {segments}")
        with _scorer(choices, model, bench) as scorer:
            ranker = _ranker(choices, collection.name, scorer)
            parts = _parts(ranker, index, collection.queries, first, choices.best)
        for tag, grid in (
            (name, choices.grid),
            (f"{name}, alone", choices.grid[choices.grid[:, 0] == 0]),
        ):
            tuning = tune(parts, collection.qrels, grid, choices.tune, folds, recipe.depth)
            tunings[tag] = tuning
            runs[tag] = _mixed(first, parts, tuning, tag)
    return EvidenceRuns(collection.name, collection.qrels, baseline, runs, tunings)


def _first_stages(
    choices: Evidence, recipe: Recipe, index: Index, collection: TestCollection
) -> dict[str, Run]:
    """BM25, and RM3 if it is asked for; or the run that others made."""
    if collection.run:
        wanted = {query.query_id for query in collection.queries}
        kept = {q: r for q, r in collection.run.rankings.items() if q in wanted}
        return {THEIRS: Run(kept, THEIRS).head(recipe.depth)}
    stages = {BM25: FirstStage(recipe.model)}
    if choices.rm3:
        stages[EXPANDED] = FirstStage(recipe.model, expansion=RM3())
    return {
        tag: rank_queries(index, collection.queries, stage, depth=recipe.depth, tag=tag)
        for tag, stage in stages.items()
    }


@contextmanager
def _scorer(choices: Evidence, model: str, bench: Bench) -> Iterator[Scorer]:
    """The model, which keeps its scores where there is a place for them."""
    scorer = load_scorer(model, precision=choices.precision)
    if bench.kept is None:
        yield scorer
        return
    with ScoreStore(bench.kept / "scores", scorer) as store:
        yield Remembering(scorer, store)


def _ranker(choices: Evidence, collection: str, scorer: Scorer) -> Ranker:
    """Finds a document's best segments, all of weight 1."""
    segments = choices.segments_of.get(collection, choices.segments)
    return Ranker(
        scorer,
        segmenter=parse_segmenter(segments),
        aggregation=Top((1.0,) * choices.best),
        interpolation=Interpolation(0.0),
        depth=choices.depth_of.get(collection, choices.depth),
    )


def _parts(
    ranker: Ranker, index: Index, queries: tuple[Query, ...], first: Run, best_of: int
) -> Parts:
    """Each candidate's first-stage score ÷ the highest, and its best segments' scores."""
    readers = Readers(IndexEngine(index), ranker)
    found = {}
    for query in queries:
        candidates = first.rankings.get(query.query_id, Ranking.of([], [])).head(ranker.depth)
        highest = float(candidates.scores.max(initial=0)) or 1.0
        scores = {d: np.zeros(1 + best_of) for d in sorted(candidates.doc_ids, reverse=True)}
        for doc_id, score in candidates:
            scores[doc_id][0] = score / highest
        for hit in settle(readers, query, candidates, ranker).hits:
            best = sorted((one.score for one in hit.segments), reverse=True)
            scores[hit.document.doc_id][1 : 1 + len(best)] = best
        if scores:
            found[query.query_id] = Candidates(tuple(scores), np.stack(list(scores.values())))
    return found


def _mixed(first: Run, parts: Parts, tuning: Tuning, tag: str) -> Run:
    """Each query's candidates by the weights of its fold; those below keep their order."""
    weights = tuning.by_query()
    rankings = {}
    for query_id, candidates in parts.items():
        chosen = weights[query_id]
        mixed = sum(w * candidates.scores[:, i] for i, w in enumerate(chosen))
        rankings[query_id] = with_rest(
            Ranking.of(candidates.doc_ids, mixed), first.rankings[query_id]
        )
    return Run(rankings, tag)
