"""How are scores cached in limited memory?"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from birchbark.records import Float32s, Ids
from birchbark.score_cache.score_file import Keys, pair_keys
from birchbark.score_cache.score_table import ScoreTable

MAX_BYTES = 100_000_000
KEY_BYTES = 16


class MemoryCache:
    """Holds the most recently used scores; threads can share it. See ScoreCache.

    There are two generations. New scores are added to the young one, and scores found in the old
    one are copied to it. When the young generation is full, it becomes the old one, and the
    previous old one is dropped.
    """

    def __init__(self, width: int = 1, max_bytes: int | None = MAX_BYTES) -> None:
        """Create an empty cache.

        width: float32 numbers per pair. max_bytes: approximate size of both generations together;
        None for no limit.
        """
        self._width = width
        per_pair = KEY_BYTES + 4 * width
        self._max_pairs = inf if max_bytes is None else max(1, max_bytes // (2 * per_pair))
        self._young, self._old = ScoreTable(width), ScoreTable(width)
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._young) + len(self._old)

    def keys(self, query: str, token_ids: Sequence[Ids]) -> Keys:
        """See ScoreCache."""
        return pair_keys("", query, token_ids)

    def find(self, keys: Keys) -> tuple[Float32s, NDArray[np.bool_]]:
        """See ScoreCache."""
        with self._lock:
            scores, known = self._young.find(keys)
            if not known.all() and len(self._old):
                missing = np.flatnonzero(~known)
                old_scores, in_old = self._old.find(keys[missing])
                moved = missing[in_old]
                scores[moved], known[moved] = old_scores[in_old], True
                self._add(keys[moved], scores[moved])
        return scores, known

    def add(self, keys: Keys, scores: Float32s) -> None:
        """See ScoreCache; pairs that another thread has added in the meantime are skipped."""
        with self._lock:
            new = ~self._young.find(keys)[1]
            self._add(keys[new], scores[new])

    def _add(self, keys: Keys, scores: Float32s) -> None:
        if not len(keys):
            return
        if len(self._young) + len(keys) > self._max_pairs:
            self._young, self._old = ScoreTable(self._width), self._young
        self._young.add(keys, scores)
