"""How are first-stage scores mixed with evidence or other runs, with weights chosen per fold?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

import numpy as np

from birchbark.evaluate.rank_measures import Float64s
from birchbark.evaluate.tune import Candidates, Tuning, count_steps
from birchbark.records import Float32s, Ranking, Run

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


def evidence_grid(step: float, segments: int) -> Float64s:
    """Return the weights to try of the first stage and of the best segments (birch, equation 3.2).

    Shape (weightings, 1 + segments). The first column is a; the others are (1 − a) · w_i, where
    w_1 = 1. a and the other w_i are multiples of `step` from 0 to 1. Raises what `count_steps`
    raises.
    """
    steps = count_steps(step)
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
