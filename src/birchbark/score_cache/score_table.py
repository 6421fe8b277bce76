"""How are scores found by their keys in memory?

By binary search in sorted arrays, which need 20 bytes per score and no Python object. A table
consists of a few sorted blocks, each at least twice as long as the next. Adding scores therefore
merges blocks rarely, and a lookup searches only a few arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.records import Float32s
from birchbark.score_cache.score_file import Keys, row_shape


@dataclass(frozen=True, slots=True)
class _SortedBlock:
    """Scores (n,) or vectors (n, width), sorted by the first half of their keys."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]
    scores: Float32s

    @classmethod
    def of(cls, keys: Keys, scores: Float32s) -> _SortedBlock:
        order = np.argsort(keys[:, 0])
        return cls(keys[order, 0], keys[order, 1], scores[order])

    def merged(self, other: _SortedBlock) -> _SortedBlock:
        first = np.concatenate([self.first, other.first])
        order = np.argsort(first, kind="stable")  # linear time for two sorted arrays
        second = np.concatenate([self.second, other.second])
        scores = np.concatenate([self.scores, other.scores])
        return _SortedBlock(first[order], second[order], scores[order])

    def find(self, keys: Keys, scores: Float32s, known: NDArray[np.bool_]) -> None:
        """Fill in the scores that this block holds, and mark their keys in `known`.

        keys: (n, 2). scores: (n,) or (n, width), changed. known: bool (n,), changed; keys that are
        already known are not searched.
        """
        missing = np.flatnonzero(~known)  # rows of `keys`
        at = np.searchsorted(self.first, keys[missing, 0])  # first candidate for each missing key
        while len(missing):  # repeats only if several keys share their first half
            inside = at < len(self.first)
            missing, at = missing[inside], at[inside]
            same_first = self.first[at] == keys[missing, 0]
            missing, at = missing[same_first], at[same_first]
            equal = self.second[at] == keys[missing, 1]
            scores[missing[equal]] = self.scores[at[equal]]
            known[missing[equal]] = True
            missing, at = missing[~equal], at[~equal] + 1


class ScoreTable:
    """A growing table of scores by key. A key must not be added twice."""

    def __init__(self, width: int = 1) -> None:
        """Create an empty table. width: 1 for scores, otherwise the length of a vector."""
        self._width = width
        self._blocks: list[_SortedBlock] = []

    def __len__(self) -> int:
        return sum(len(block.scores) for block in self._blocks)

    def add(self, keys: Keys, scores: Float32s) -> None:
        """Add the scores (n,) or vectors (n, width) of `keys` (n, 2)."""
        block = _SortedBlock.of(keys, scores)
        while self._blocks and 2 * len(block.scores) > len(self._blocks[-1].scores):
            block = self._blocks.pop().merged(block)
        self._blocks.append(block)

    def find(self, keys: Keys) -> tuple[Float32s, NDArray[np.bool_]]:
        """Return the scores of `keys` and a mask of the keys found; see ScoreCache.find."""
        scores = np.full((len(keys), *row_shape(self._width)), np.nan, np.float32)
        known = np.zeros(len(keys), np.bool_)
        for block in self._blocks:
            block.find(keys, scores, known)
        return scores, known
