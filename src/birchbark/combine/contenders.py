"""Which documents can still be among the k best, given upper bounds on their scores?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from birchbark.records import best_first

Bools = NDArray[np.bool_]
Float64s = NDArray[np.float64]


def contenders(
    bounds: Float64s, scores: Float64s, final: Bools, readable: Bools, k: int
) -> list[int]:
    """Return the positions of documents without a final score that can be among the k best.

    They are in descending order of their bounds; equal bounds in order of position. A document is
    left out only if its bound is below the k-th best final score. The k best, their order and their
    scores are therefore the same as if all documents had been scored. While only m < k documents
    have final scores, the first k − m of the result must be scored, whatever the other scores turn
    out to be.

    bounds: (n,), each at least the document's score, both as float32; inf if unknown. scores: (n,),
    used where they are final. readable: (n,), false for documents that are not to be scored.
    """
    known = scores[final].astype(np.float32)
    enough = len(known) >= k > 0
    threshold = np.partition(known, -k)[-k] if enough else np.float32(-np.inf)
    possible = readable & ~final & (bounds.astype(np.float32) >= threshold)
    positions = np.flatnonzero(possible)
    order: list[int] = positions[best_first(bounds[positions])].tolist()
    return order
