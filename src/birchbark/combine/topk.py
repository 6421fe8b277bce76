"""Which documents can still be among the k best? Those whose bound reaches the k-th best score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from birchbark.errors import InputError
from birchbark.records import Ranking


class TopK:
    """The race for the k best of n documents: each has a bound, and once it is settled a score.

    No document is left out that could be among the k best, ties included, so the winners, their
    order and scores are those of settling all.
    """

    def __init__(self, doc_ids: Sequence[str], bounds: ArrayLike, k: int) -> None:
        """Bounds (n,): no score, as float32, can be higher; inf where nothing is known."""
        self._doc_ids, self._k = doc_ids, k
        self._bounds = np.array(bounds, np.float64)
        self._scores = np.full(len(doc_ids), np.nan)

    def lower(self, position: int, bound: float) -> None:
        """A document turns out to have a lower bound."""
        self._bounds[position] = min(self._bounds[position], bound)

    def settle(self, position: int, score: float) -> None:
        """A document's score is known, or known better; InputError if it is no finite number."""
        if not np.isfinite(score):
            doc_id = self._doc_ids[position]
            raise InputError(f"score of document {doc_id} is not a finite number")
        self._scores[position] = score

    def open(self) -> list[int]:
        """Positions of unsettled documents that can still be among the k best, best bound first.

        Of equal bounds the earlier position comes first. The first max(0, k − settled) of them must
        be settled in any case.
        """
        unsettled = np.isnan(self._scores)
        known = self._scores[~unsettled].astype(np.float32)
        enough = len(known) >= self._k > 0
        least = np.partition(known, -self._k)[-self._k] if enough else np.float32(-np.inf)
        found = np.flatnonzero(unsettled & (self._bounds.astype(np.float32) >= least))
        order: list[int] = found[np.argsort(-self._bounds[found], kind="stable")].tolist()
        return order

    def best(self, count: int | None = None) -> Ranking:
        """The k best of the settled documents, or the `count` best."""
        at = np.flatnonzero(~np.isnan(self._scores)).tolist()
        doc_ids = [self._doc_ids[i] for i in at]
        return Ranking.of(doc_ids, self._scores[at], self._k if count is None else count)
