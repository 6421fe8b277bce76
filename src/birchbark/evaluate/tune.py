"""Which weights combine several scores best? A grid search with cross-validation.

The caller computes the scores of each component once; this module only combines and evaluates
them. A weighting is one weight for each component.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.evaluate.folds import Folds, choose_by_fold
from birchbark.evaluate.rank_measures import (
    UNRANKED,
    Float64s,
    measure_ranks,
    parse_rank_measure,
)
from birchbark.records import Qrels, Ranking

MAX_WEIGHTINGS = 200_000  # per grid; the birch paper has 1,331 (benchmarks/RESULTS-TUNING.md)
CHUNK_SCORES = 50_000  # combined scores computed at a time, few enough for the CPU cache


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The candidate documents of one query, with a score for each component.

    Attributes:
        doc_ids: The n distinct ids in descending order, so that a stable sort by score breaks ties
            as trec_eval does.
        scores: (n, components).
        below: Documents that always rank after all candidates, in this order.
    """

    doc_ids: tuple[str, ...]
    scores: Float64s
    below: tuple[str, ...] = ()

    @classmethod
    def of(cls, components: Sequence[Ranking]) -> Candidates:
        """Join the documents of all rankings. A document's score is 0 where it is not ranked."""
        doc_ids = sorted({d for ranking in components for d in ranking.doc_ids}, reverse=True)
        row_of = {doc_id: row for row, doc_id in enumerate(doc_ids)}
        scores = np.zeros((len(doc_ids), len(components)))
        for number, ranking in enumerate(components):
            scores[[row_of[doc_id] for doc_id in ranking.doc_ids], number] = ranking.scores
        return cls(tuple(doc_ids), scores)


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """The weightings tried, and the weighting chosen for each fold on the other folds' queries.

    Attributes:
        weights: (weightings, components).
        values: The measure's value for each query, (weightings, queries).
        query_ids: The order of the queries in `values`.
        folds: A partition of the query ids.
        chosen: For each fold, the row of its weighting in `weights`.
    """

    weights: Float64s
    values: Float64s
    query_ids: tuple[str, ...]
    folds: Folds
    chosen: tuple[int, ...]

    def chosen_weights(self, fold: int) -> tuple[float, ...]:
        """Return the weights chosen for `fold`, which rank its queries."""
        return tuple(self.weights[self.chosen[fold]].tolist())

    def by_query(self) -> dict[str, tuple[float, ...]]:
        """Map each query id to the weights of its fold."""
        return {q: self.chosen_weights(n) for n, fold in enumerate(self.folds) for q in fold}

    def restrict(self, allowed: NDArray[np.bool_]) -> Tuning:
        """Return a Tuning that chooses only among the weightings where `allowed` is true.

        allowed: (weightings,).
        """
        values = self.values[allowed]
        chosen = choose_by_fold(values, self.query_ids, self.folds)
        return Tuning(self.weights[allowed], values, self.query_ids, self.folds, chosen)

    def means(self, fold: int) -> tuple[float, float]:
        """Return the mean of the measure under the weights chosen for `fold`.

        The first mean is over the other folds' queries (training), the second over its own (test).
        """
        in_fold = np.isin(self.query_ids, self.folds[fold])
        values = self.values[self.chosen[fold]]
        return float(values[~in_fold].mean()), float(values[in_fold].mean())


def tune(
    candidates: Mapping[str, Candidates],
    qrels: Qrels,
    weights: Float64s,
    measure_name: str,
    folds: Folds,
    depth: int,
) -> Tuning:
    """Choose for each fold the weights with the best mean of the measure on the other folds.

    folds: a partition of all judged queries. For the other arguments see `measure_mixtures`.
    Raises what `measure_mixtures` and `choose_by_fold` raise.
    """
    values = measure_mixtures(candidates, qrels, weights, measure_name, depth)
    query_ids = tuple(qrels.grades)
    return Tuning(weights, values, query_ids, folds, choose_by_fold(values, query_ids, folds))


def count_steps(step: float) -> int:
    """Return how many steps of size `step` fit into 1. InputError unless it is a whole number."""
    steps = round(1 / step) if 1e-9 <= step <= 1 else 0
    if not steps or abs(steps * step - 1) > 1e-9:
        raise InputError("invalid step", wanted="1 divided by a whole number", found=str(step))
    return steps


def check_weightings(count: int, most: int = MAX_WEIGHTINGS) -> None:
    """Raise InputError if a grid has more than `most` combinations to try."""
    if count > most:
        raise InputError(
            "too many combinations to try", wanted=f"at most {most:,}", found=f"{count:,}"
        )


def simplex_grid(components: int, step: float) -> Float64s:
    """Return every weighting on a grid of spacing `step` whose weights sum to 1.

    Shape (weightings, components), in lexicographic order; all weights are at least 0. Raises what
    `count_steps` and `check_weightings` raise.
    """
    steps = count_steps(step)
    check_weightings(math.comb(steps + components - 1, components - 1))
    places = steps + components - 1
    bars = combinations(range(places), components - 1)  # counts are the gaps between the bars
    edges = np.array([(-1, *between, places) for between in bars], np.float64)
    return (np.diff(edges, axis=1) - 1) / steps


def measure_mixtures(
    candidates: Mapping[str, Candidates],
    qrels: Qrels,
    weights: Float64s,
    measure_name: str,
    depth: int,
) -> Float64s:
    """Evaluate every weighting: (weightings, queries), queries in the order of `qrels`.

    candidates: query_id → candidates; the value for a judged query without candidates is 0.
    weights: (weightings, components).
    depth: the number of documents ranked per query; lower-ranked documents are cut off.
    Grades from `qrels.relevant` on are relevant; nDCG counts all above 0, as in `measure`.
    Raises InputError for a measure that ranks alone do not determine.
    """
    lowest = 1 if parse_rank_measure(measure_name)[0] == "nDCG" else qrels.relevant
    columns = []
    for query_id, grades in qrels.grades.items():
        relevant = {doc_id: grade for doc_id, grade in grades.items() if grade >= lowest}
        documents = candidates.get(query_id, Candidates((), np.zeros((0, weights.shape[1]))))
        ranks = _ranks(documents, list(relevant), weights)  # (weightings, relevant)
        ranks[ranks > depth] = UNRANKED
        relevant_grades = np.array(list(relevant.values()), np.int64)
        columns.append(measure_ranks(measure_name, ranks, relevant_grades))  # (weightings,)
    return np.stack(columns, axis=1)  # (weightings, queries)


def _ranks(candidates: Candidates, doc_ids: Sequence[str], weights: Float64s) -> Float64s:
    """Return the rank of each of `doc_ids` under each weighting, (weightings, doc_ids).

    Ranks count from 1; documents that are not ranked get UNRANKED. Combined scores are rounded to
    float32 before they are compared, as in a run.
    """
    ranks = np.full((len(weights), len(doc_ids)), UNRANKED)
    below = {
        doc_id: rank for rank, doc_id in enumerate(candidates.below, len(candidates.doc_ids) + 1)
    }
    for i, doc_id in enumerate(doc_ids):
        ranks[:, i] = below.get(doc_id, UNRANKED)
    row_of = {doc_id: row for row, doc_id in enumerate(candidates.doc_ids)}
    scored = [i for i, doc_id in enumerate(doc_ids) if doc_id in row_of]  # are candidates
    if not scored:
        return ranks
    rows = np.array([row_of[doc_ids[i]] for i in scored], np.int64)
    chunk = max(1, CHUNK_SCORES // len(candidates.doc_ids))
    for start in range(0, len(weights), chunk):
        part = slice(start, start + chunk)
        ranks[part, scored] = _positions(candidates.scores, weights[part])[:, rows] + 1.0
    return ranks


def _positions(scores: Float64s, weights: Float64s) -> NDArray[np.int32]:
    """Return the position, from 0, of each document under each weighting: (weightings, n)."""
    components = np.ascontiguousarray(scores.T)  # (components, n)
    total, term = np.zeros((len(weights), len(scores))), np.empty((len(weights), len(scores)))
    # add in a fixed order, which a matrix product would not guarantee
    for number, values in enumerate(components):
        np.multiply(weights[:, number, None], values[None, :], out=term)  # (weightings, n)
        np.add(total, term, out=total)
    order = _descending_order(total.astype(np.float32))  # (weightings, n)
    row_starts = np.arange(len(order))[:, None] * order.shape[1]  # in the flat array
    # invert the permutation of each row
    positions = np.empty(order.size, np.int32)
    flat_order = (order + row_starts).ravel()
    positions[flat_order] = np.tile(np.arange(order.shape[1], dtype=np.int32), len(order))
    return positions.reshape(order.shape)


def _descending_order(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return for each row its columns by descending score, (weightings, n). Ties keep their order.

    Sorts 64-bit integers with the score's bits in the upper half and the column number in the
    lower half, which is five times as fast as a stable argsort.
    """
    bits = (0.0 - scores).view(np.int32)  # 0.0 - x negates x and maps both zeros to 0.0
    sign = bits >> 31
    sign &= 0x7FFFFFFF
    bits ^= sign  # now the integers have the order of the floats
    keys = bits.astype(np.int64)
    keys <<= 32
    keys |= np.arange(scores.shape[1])
    keys.sort(axis=1)
    keys &= 0xFFFFFFFF
    return keys
