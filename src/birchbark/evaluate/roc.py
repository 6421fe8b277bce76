"""How well do scores tell relevant pairs from others? The ROC curve, and the area under it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

Floats = NDArray[np.float64]


def roc(scores: NDArray[np.floating], relevant: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Share of the others, and of the relevant, that score at least each distinct score.

    scores, relevant: (n,), of all pairs together. Both begin at 0 and end at 1. Raises InputError
    unless there are relevant pairs and others.
    """
    if relevant.all() or not relevant.any():
        raise InputError(
            "a ROC curve needs relevant pairs and others", found=f"{len(scores)} pairs"
        )
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    right = np.cumsum(relevant[order])[last]
    others = last + 1 - right
    return (
        np.append(0.0, others / (~relevant).sum()),
        np.append(0.0, right / relevant.sum()),
    )


def auc(scores: NDArray[np.floating], relevant: NDArray[np.bool_]) -> float:
    """The area under the ROC curve: the chance that a relevant pair scores above another.

    Equal scores count half. Errors as `roc`.
    """
    x, y = roc(scores, relevant)
    return float(np.sum((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2))
