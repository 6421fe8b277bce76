"""Which score does a key have? Sorted arrays, 20 bytes a score; no Python object for each.

A lookup is a binary search in a few arrays, each at least twice as long as the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.records import Float32s
from birchbark.remember.file import Keys, shaped


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Scores (n,), or vectors (n, width), in the order of the first halves of their keys."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]
    scores: Float32s

    @classmethod
    def of(cls, keys: Keys, scores: Float32s) -> _Sorted:
        order = np.argsort(keys[:, 0])
        return cls(keys[order, 0], keys[order, 1], scores[order])

    def joined(self, other: _Sorted) -> _Sorted:
        first = np.concatenate([self.first, other.first])
        order = np.argsort(first, kind="stable")  # merges what is sorted already
        second = np.concatenate([self.second, other.second])
        scores = np.concatenate([self.scores, other.scores])
        return _Sorted(first[order], second[order], scores[order])

    def find(self, keys: Keys, scores: Float32s, known: NDArray[np.bool_]) -> None:
        """Fill in the scores of `keys` that are here, and mark them as known."""
        asked = np.flatnonzero(~known)
        at = np.searchsorted(self.first, keys[asked, 0])
        while len(asked):  # a second round only where two keys share their first half
            inside = at < len(self.first)
            asked, at = asked[inside], at[inside]
            same = self.first[at] == keys[asked, 0]
            asked, at = asked[same], at[same]
            here = self.second[at] == keys[asked, 1]
            scores[asked[here]] = self.scores[at[here]]
            known[asked[here]] = True
            asked, at = asked[~here], at[~here] + 1


class Lookup:
    """Scores by key, to which more can be added."""

    def __init__(self, width: int = 1) -> None:
        """width: 1 for scores; else vectors of so many numbers stand for them."""
        self._width = width
        self._sorted: list[_Sorted] = []

    def __len__(self) -> int:
        return sum(len(one.scores) for one in self._sorted)

    def add(self, keys: Keys, scores: Float32s) -> None:
        """Add the scores of `keys` (n, 2)."""
        new = _Sorted.of(keys, scores)
        while self._sorted and 2 * len(new.scores) > len(self._sorted[-1].scores):
            new = self._sorted.pop().joined(new)
        self._sorted.append(new)

    def find(self, keys: Keys) -> tuple[Float32s, NDArray[np.bool_]]:
        """Scores (n,) or vectors (n, width), NaN where there is none, and which are known (n,)."""
        scores = np.full((len(keys), *shaped(self._width)), np.nan, np.float32)
        known = np.zeros(len(keys), np.bool_)
        for one in self._sorted:
            one.find(keys, scores, known)
        return scores, known
