"""How are first-stage scores mixed with evidence or other runs, with weights chosen per fold?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from birchbark.evaluate.folds import Folds, choose_by_fold
from birchbark.evaluate.measures import measure
from birchbark.evaluate.rank_measures import Float64s
from birchbark.evaluate.tune import Candidates, Tuning, check_weightings, count_steps
from birchbark.records import Float32s, Qrels, Ranking, Run

ScaleScores = Callable[[Float32s], Float64s]  # the scores of one query's documents, (n,)
SegmentScores = Mapping[str, Sequence[float]]  # doc_id → scores of its segments, best first


def evidence_candidates(
    ranking: Ranking, depth: int, segments: SegmentScores, count: int, scale: ScaleScores
) -> Candidates:
    """Join the scaled first-stage scores with the best `count` segment scores of each document.

    A document without so many segments, or without scores, has scores of 0 in their place.

    ranking: of the first stage. depth: the number of its documents that are candidates; the others
    follow below them.
    """
    head = ranking.head(depth)
    stage = scale(head.scores)
    scores = {doc_id: np.zeros(1 + count) for doc_id in sorted(head.doc_ids, reverse=True)}
    for doc_id, score in zip(head.doc_ids, stage.tolist(), strict=True):
        best = segments.get(doc_id, ())[:count]
        scores[doc_id][: 1 + len(best)] = [score, *best]
    return Candidates(tuple(scores), np.stack(list(scores.values())), ranking.doc_ids[len(head) :])


def with_evidence(
    first: Run,
    scores: Mapping[str, SegmentScores],
    count: int,
    depth: int,
    scale: ScaleScores,
) -> dict[str, Candidates]:
    """Join a run with segment scores; query_id → candidates.

    Candidates are the documents that have segment scores among the best `depth` of each query; the
    run's other documents follow below them.

    scores: query_id → doc_id → scores of segments, in any order. count: see `evidence_candidates`.
    """
    candidates = {}
    for query_id, ranking in first.rankings.items():
        of_query = scores.get(query_id, {})
        best = {d: sorted(of_d, reverse=True) for d, of_d in of_query.items() if of_d}
        head = ranking.head(depth)
        known = np.array([doc_id in best for doc_id in head.doc_ids], bool)
        doc_ids = [d for d, is_known in zip(head.doc_ids, known, strict=True) if is_known]
        among = set(doc_ids)
        below = tuple(doc_id for doc_id in ranking.doc_ids if doc_id not in among)
        joined = Candidates((), np.zeros((0, 1 + count)))
        if doc_ids:
            ranked = Ranking.of(doc_ids, head.scores[known])
            joined = evidence_candidates(ranked, len(ranked), best, count, scale)
        candidates[query_id] = replace(joined, below=below)
    return candidates


def evidence_grid(step: float, segments: int) -> Float64s:
    """Return the weights to try of the first stage and of the best segments (birch, equation 3.2).

    Shape (weightings, 1 + segments). The first column is a; the others are (1 − a) · w_i, where
    w_1 = 1. a and the other w_i are multiples of `step` from 0 to 1. Raises what `count_steps`
    and `check_weightings` raise.
    """
    steps = count_steps(step)
    check_weightings((steps + 1) ** segments)
    levels = np.arange(steps + 1) / steps
    return np.array(
        [
            (a, *((1 - a) * w for w in (1.0, *others)))
            for a in levels
            for others in product(levels, repeat=segments - 1)
        ]
    )


def run_candidates(
    runs: Sequence[Run], query_ids: Iterable[str], depth: int, scale: ScaleScores
) -> dict[str, Candidates]:
    """Join the best `depth` documents of each run, with their scores scaled; query_id → candidates.

    A document has the score 0 by a run that does not rank it so high. Queries that no run ranks are
    left out.
    """
    candidates = {}
    for query_id in query_ids:
        heads = [run.rankings.get(query_id, Ranking.of([], [])).head(depth) for run in runs]
        if any(len(head) for head in heads):
            scaled = (Ranking.of(h.doc_ids, scale(h.scores)) for h in heads)
            candidates[query_id] = Candidates.of(list(scaled))
    return candidates


def cross_validated_run(
    runs: Sequence[Run], qrels: Qrels, folds: Folds, measure_name: str, tag: str
) -> tuple[Run, Float64s, tuple[int, ...]]:
    """Rank each query as the run does that is best on the other folds.

    Returns the run, the measure's values (runs, queries) for the queries in the order of `qrels`,
    and for each fold the number of its run. Raises what `choose_by_fold` raises.
    """
    query_ids = tuple(qrels.grades)
    results = [measure(qrels, run, [measure_name]).values[measure_name] for run in runs]
    values = np.array([[of_run[query_id] for query_id in query_ids] for of_run in results])
    chosen = choose_by_fold(values, query_ids, folds)
    rankings = {
        query_id: runs[row].rankings[query_id]
        for fold, row in zip(folds, chosen, strict=True)
        for query_id in fold
        if query_id in runs[row].rankings
    }
    return Run(rankings, tag), values, chosen


def mixed_run(candidates: Mapping[str, Candidates], tuning: Tuning, tag: str) -> Run:
    """Rank each query's candidates with the weights of its fold; documents below keep their order.

    A query that is in no fold is ranked with the weights of the first fold.
    """
    weights = tuning.by_query()
    rankings = {}
    for query_id, documents in candidates.items():
        of_query = weights.get(query_id) or tuning.chosen_weights(0)
        total = sum(w * documents.scores[:, i] for i, w in enumerate(of_query))
        rankings[query_id] = Ranking.of(documents.doc_ids, total).followed_by(documents.below)
    return Run(rankings, tag)
