"""Which documents can still be among the k best, given upper bounds on their scores?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from birchbark.errors import InputError
from birchbark.records import Ranking, best_first


class TopK:
    """Tracks upper bounds and scores of n documents until the k best are certain.

    A document can be skipped only if its bound is below the k-th best score so far. The k best,
    their order and their scores are therefore the same as if all documents had been scored.
    """

    def __init__(self, doc_ids: Sequence[str], bounds: ArrayLike, k: int) -> None:
        """bounds: (n,), each at least the document's score, both as float32; inf if unknown."""
        self._doc_ids, self._k = doc_ids, k
        self._bounds = np.array(bounds, np.float64)
        self._scores = np.full(len(doc_ids), np.nan)
        self._final = np.zeros(len(doc_ids), bool)

    def lower_bound(self, position: int, bound: float) -> None:
        """Lower the bound of a document to `bound`; ignored if the present bound is lower."""
        self._bounds[position] = min(self._bounds[position], bound)

    def set_score(self, position: int, score: float, *, final: bool = True) -> None:
        """Set or replace the score of a document; InputError if it is not a finite number.

        final: false if more of the document is to be read, so that its bound still holds.
        """
        if not np.isfinite(score):
            doc_id = self._doc_ids[position]
            raise InputError(f"score of document {doc_id} is not a finite number")
        self._scores[position], self._final[position] = score, final

    def contenders(self) -> list[int]:
        """Return the positions of documents without a final score that can be among the k best.

        They are in descending order of their bounds; equal bounds in order of position. While only
        m < k documents have final scores, the first k − m of them must be scored, whatever the
        other scores turn out to be.
        """
        scores = self._scores[self._final].astype(np.float32)
        enough = len(scores) >= self._k > 0
        threshold = np.partition(scores, -self._k)[-self._k] if enough else np.float32(-np.inf)
        positions = np.flatnonzero(~self._final & (self._bounds.astype(np.float32) >= threshold))
        order: list[int] = positions[best_first(self._bounds[positions])].tolist()
        return order

    @property
    def scored(self) -> int:
        """Number of documents with a score."""
        return len(self._doc_ids) - int(np.isnan(self._scores).sum())

    def best(self, count: int | None = None) -> Ranking:
        """Return the `count` best of the documents scored so far; the k best by default."""
        scored = np.flatnonzero(~np.isnan(self._scores)).tolist()
        doc_ids = [self._doc_ids[i] for i in scored]
        return Ranking.of(doc_ids, self._scores[scored], self._k if count is None else count)
