"""How are scores remembered for as long as memory allows?"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from birchbark.records import Float32s, Ids
from birchbark.remember.file import Keys
from birchbark.remember.remembering import Known

MOST_BYTES = 100_000_000
KEY_BYTES = 16


class Recent:
    """Scores of the last pairs that were asked for; threads may share it. See `Scores`.

    Two generations: new scores go to the young one, and those found in the old one move there. When
    the young one is full it becomes the old, and what lay there is forgotten.
    """

    def __init__(self, width: int = 1, most_bytes: int = MOST_BYTES) -> None:
        """width: numbers a pair; most_bytes: that all of them may take, about."""
        self._width = width
        self._most = max(1, most_bytes // (2 * (KEY_BYTES + 4 * width)))
        self._young, self._old = Known(width), Known(width)
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._young) + len(self._old)

    def keys(self, query: str, pieces: Sequence[Ids]) -> Keys:
        """See Scores."""
        return self._young.keys(query, pieces)

    def find(self, keys: Keys) -> tuple[Float32s, NDArray[np.bool_]]:
        """See Scores."""
        with self._lock:
            scores, known = self._young.find(keys)
            if not known.all() and len(self._old):
                left = np.flatnonzero(~known)
                old, there = self._old.find(keys[left])
                moved = left[there]
                scores[moved], known[moved] = old[there], True
                self._add(keys[moved], scores[moved])
        return scores, known

    def add(self, keys: Keys, scores: Float32s) -> None:
        """See Scores; another thread may have added some of them meanwhile."""
        with self._lock:
            new = ~self._young.find(keys)[1]
            self._add(keys[new], scores[new])

    def _add(self, keys: Keys, scores: Float32s) -> None:
        if not len(keys):
            return
        if len(self._young) + len(keys) > self._most:
            self._young, self._old = Known(self._width), self._young
        self._young.add(keys, scores)
