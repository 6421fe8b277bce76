"""How are the postings of one term added to the scores of its documents? Compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.index.compiled import compiled


@compiled
def add_bm25(
    scores: NDArray[np.float64],
    docs: NDArray[Any],
    tfs: NDArray[Any],
    lengths: NDArray[Any],
    weight: float,
    floor: float,
    slope: float,
) -> None:
    """Add weight · tf / (tf + floor + slope · length) to the score of each document in `docs`.

    With floor = k1·(1 − b) and slope = k1·b / average length this is BM25's term frequency part.
    """
    for i in range(len(docs)):
        doc = docs[i]
        tf = np.float64(tfs[i])
        scores[doc] += weight * tf / (tf + floor + slope * lengths[doc])


@compiled
def add_products(
    scores: NDArray[np.float64], docs: NDArray[Any], tfs: NDArray[Any], weight: float
) -> None:
    """Add weight · tf to the score of each document in `docs`."""
    for i in range(len(docs)):
        scores[docs[i]] += weight * tfs[i]


@compiled
def add_squares(
    squares: NDArray[np.float64],
    starts: NDArray[Any],
    docs: NDArray[Any],
    tfs: NDArray[Any],
    weights: NDArray[np.float64],
) -> None:
    """Add (weight of the term · tf)² to each document's sum, over all postings of a part."""
    for term in range(len(weights)):
        for i in range(starts[term], starts[term + 1]):
            value = weights[term] * tfs[i]
            squares[docs[i]] += value * value
