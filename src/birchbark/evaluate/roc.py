"""How well do scores separate relevant from non-relevant pairs? The ROC curve and its area."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

Floats = NDArray[np.float64]


def roc(scores: NDArray[np.floating], relevant: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the false and true positive rates at each distinct score, highest score first.

    scores, relevant: (n,), the query–document pairs of all queries. Both rates start at 0 and end
    at 1. Raises InputError unless there are both relevant and non-relevant pairs.
    """
    if relevant.all() or not relevant.any():
        raise InputError(
            "a ROC curve needs relevant and non-relevant pairs",
            found=f"{relevant.sum()} relevant of {len(scores)} pairs",
        )
    order = np.argsort(-scores, kind="stable")
    # the last pair of each run of equal scores
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    true_positives = np.cumsum(relevant[order])[last]
    false_positives = last + 1 - true_positives
    return (
        np.append(0.0, false_positives / (~relevant).sum()),
        np.append(0.0, true_positives / relevant.sum()),
    )


def auc(scores: NDArray[np.floating], relevant: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve.

    It is the probability that a relevant pair scores higher than a non-relevant pair; equal scores
    count half. Raises what `roc` raises.
    """
    x, y = roc(scores, relevant)
    return float(np.sum((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2))
