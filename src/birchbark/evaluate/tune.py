"""Which weights mix several scores best? A grid of mixtures, measured query by query.

Each part's scores are computed once, by whoever makes them; here they are only mixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.evaluate.folds import Folds, choose_by_fold
from birchbark.evaluate.ranks import UNRANKED, Float64s, measure_ranks
from birchbark.records import Qrels, Ranking

SCORES_AT_ONCE = 50_000  # what a processor keeps near


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What may be ranked for one query, with a score for each part of the mixture.

    doc_ids: n distinct ids, falling, so that a stable sort keeps the tie rule. scores: (n, parts).
    below: further documents, ranked in this order under all of those, whatever the mixture.
    """

    doc_ids: tuple[str, ...]
    scores: Float64s
    below: tuple[str, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[Ranking]) -> Candidates:
        """The documents of all `parts`; one that a part does not rank scores 0 there."""
        doc_ids = sorted({doc_id for part in parts for doc_id in part.doc_ids}, reverse=True)
        place = {doc_id: number for number, doc_id in enumerate(doc_ids)}
        scores = np.zeros((len(doc_ids), len(parts)))
        for number, part in enumerate(parts):
            scores[[place[doc_id] for doc_id in part.doc_ids], number] = part.scores
        return cls(tuple(doc_ids), scores)


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """What was tried, and what was chosen for each fold by the queries of the others.

    weights: (settings, parts). values: (settings, queries) of the measure, queries in the order of
    `query_ids`. chosen: fold → setting.
    """

    weights: Float64s
    values: Float64s
    query_ids: tuple[str, ...]
    folds: Folds
    chosen: tuple[int, ...]

    def chosen_weights(self, fold: int) -> tuple[float, ...]:
        """The weights that the queries of `fold` are ranked with."""
        return tuple(self.weights[self.chosen[fold]].tolist())

    def by_query(self) -> dict[str, tuple[float, ...]]:
        """Query id → weights."""
        return {q: self.chosen_weights(n) for n, fold in enumerate(self.folds) for q in fold}

    def among(self, some: NDArray[np.bool_]) -> Tuning:
        """As if only `some` (settings,) of the weights had been tried."""
        values = self.values[some]
        chosen = choose_by_fold(values, self.query_ids, self.folds)
        return Tuning(self.weights[some], values, self.query_ids, self.folds, chosen)

    def means(self, fold: int) -> tuple[float, float]:
        """The measure with the chosen weights: on the other folds, and on `fold` itself."""
        inside = np.isin(self.query_ids, self.folds[fold])
        values = self.values[self.chosen[fold]]
        return float(values[~inside].mean()), float(values[inside].mean())


def tune(
    candidates: Mapping[str, Candidates],
    qrels: Qrels,
    weights: Float64s,
    name: str,
    folds: Folds,
    depth: int,
) -> Tuning:
    """For each fold, the weights with the best mean of measure `name` on the other folds.

    folds: of the judged queries, all of them. Arguments else, and errors, as `measure_mixtures`.
    """
    values = measure_mixtures(candidates, qrels, weights, name, depth)
    query_ids = tuple(qrels.grades)
    return Tuning(weights, values, query_ids, folds, choose_by_fold(values, query_ids, folds))


def steps_of(step: float) -> int:
    """How many steps make 1; InputError unless it is a whole number."""
    steps = round(1 / step) if 0 < step <= 1 else 0
    if not steps or abs(steps * step - 1) > 1e-9:
        raise InputError("not a step", wanted="1 divided by a whole number", found=str(step))
    return steps


def simplex(parts: int, step: float) -> Float64s:
    """All weights (settings, parts) of 0 or more that sum to 1, in steps of `step`, sorted.

    Raises InputError unless 1 is a whole number of steps.
    """
    steps = steps_of(step)
    counts = [c for c in product(range(steps + 1), repeat=parts - 1) if sum(c) <= steps]
    return np.array([(*c, steps - sum(c)) for c in counts], np.float64) / steps


def measure_mixtures(
    candidates: Mapping[str, Candidates], qrels: Qrels, weights: Float64s, name: str, depth: int
) -> Float64s:
    """The measure `name` of every mixture: (settings, queries), queries in the order of `qrels`.

    weights: (settings, parts). depth: documents below it are not in the ranking. A judged query
    without candidates counts 0. Raises InputError for a measure that ranks cannot give.
    """
    columns = []
    for query_id, grades in qrels.grades.items():
        relevant = {doc_id: grade for doc_id, grade in grades.items() if grade > 0}
        found = candidates.get(query_id, Candidates((), np.zeros((0, weights.shape[1]))))
        ranks = _ranks(found, list(relevant), weights)
        ranks[ranks > depth] = UNRANKED
        columns.append(measure_ranks(name, ranks, np.array(list(relevant.values()), np.int64)))
    return np.stack(columns, axis=1)


def _ranks(candidates: Candidates, wanted: Sequence[str], weights: Float64s) -> Float64s:
    """Ranks (settings, wanted) of some documents; scores are compared as float32, as in a run."""
    ranks = np.full((len(weights), len(wanted)), UNRANKED)
    under = {
        doc_id: rank for rank, doc_id in enumerate(candidates.below, len(candidates.doc_ids) + 1)
    }
    for i, doc_id in enumerate(wanted):
        ranks[:, i] = under.get(doc_id, UNRANKED)
    numbers = {doc_id: number for number, doc_id in enumerate(candidates.doc_ids)}
    here = [i for i, doc_id in enumerate(wanted) if doc_id in numbers]
    places = np.array([numbers[wanted[i]] for i in here], np.int64)
    if not here:
        return ranks
    chunk = max(1, SCORES_AT_ONCE // len(candidates.doc_ids))
    for start in range(0, len(weights), chunk):
        some = slice(start, start + chunk)
        ranks[some, here] = _positions(candidates.scores, weights[some])[:, places] + 1.0
    return ranks


def _positions(scores: Float64s, weights: Float64s) -> NDArray[np.int32]:
    """Positions (settings, n) of the documents in each mixture, from 0."""
    parts = np.ascontiguousarray(scores.T)
    mixed, part = np.zeros((len(weights), len(scores))), np.empty((len(weights), len(scores)))
    for number, values in enumerate(parts):  # in a fixed order, which a matrix product has not
        np.multiply(weights[:, number, None], values[None, :], out=part)
        np.add(mixed, part, out=mixed)
    order = _falling(mixed.astype(np.float32))
    order += np.arange(len(order))[:, None] * order.shape[1]
    positions = np.empty(order.size, np.int32)
    positions[order.ravel()] = np.tile(np.arange(order.shape[1], dtype=np.int32), len(order))
    return positions.reshape(order.shape)


def _falling(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Columns (settings, n) of each row by falling score, of equal scores the first first.

    Whole numbers are sorted, the score's bits in front of the column's number: five times as fast
    as a stable argsort.
    """
    bits = (0.0 - scores).view(np.int32)  # 0 minus, so that there is one zero
    sign = bits >> 31
    sign &= 0x7FFFFFFF
    bits ^= sign  # now they rise as floats do
    keys = bits.astype(np.int64)
    keys <<= 32
    keys |= np.arange(scores.shape[1])
    keys.sort(axis=1)
    keys &= 0xFFFFFFFF
    return keys
