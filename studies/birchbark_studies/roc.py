"""How well do scores separate relevant from non-relevant pairs? The ROC curve and its area."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from birchbark import InputError, defaults
from birchbark.evaluate.significance import NO_SPREAD, bootstrap_interval

AUC_RESAMPLES = 1_000
MIN_QUERIES = 5  # with relevant pairs, for an interval
Floats = NDArray[np.float64]


def roc(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    weights: NDArray[np.floating] | None = None,
) -> tuple[Floats, Floats]:
    """Return the false and true positive rates at each distinct score, highest score first.

    scores, relevant: (n,), the query–document pairs of all queries. weights: how often each pair
    counts (n,); once by default. Both rates start at 0 and end at 1. Raises InputError unless
    there are both relevant and non-relevant pairs.
    """
    if relevant.all() or not relevant.any():
        raise InputError(
            "a ROC curve needs relevant and non-relevant pairs",
            found=f"{relevant.sum()} relevant of {len(scores)} pairs",
        )
    order = np.argsort(-scores, kind="stable")
    # the last pair of each run of equal scores
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    counts = np.ones(len(order)) if weights is None else weights[order]
    true_positives = np.cumsum(counts * relevant[order])[last]
    false_positives = np.cumsum(counts * ~relevant[order])[last]
    return (
        np.append(0.0, false_positives / false_positives[-1]),
        np.append(0.0, true_positives / true_positives[-1]),
    )


def auc(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    weights: NDArray[np.floating] | None = None,
) -> float:
    """Return the area under the ROC curve.

    It is the probability that a relevant pair scores higher than a non-relevant pair; equal scores
    count half. weights: see `roc`. Raises what `roc` raises.
    """
    x, y = roc(scores, relevant, weights)
    return float(np.sum((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2))


def auc_with_interval(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    queries: NDArray[np.integer],
    *,
    seed: int = defaults.SEED,
    resamples: int = AUC_RESAMPLES,
) -> tuple[float, tuple[float, float] | None]:
    """Return `auc` and its 95 % interval, by the BCa bootstrap over queries.

    scores: (n,), or (models, n) for the mean of `auc` over several models.
    queries: the number of each pair's query (n,). The pairs of a query stay together, since they
    are not independent. There is no interval (None) if fewer than MIN_QUERIES queries have relevant
    pairs, since many resamples would have none. Raises what `roc` raises, and MissingPackageError
    without scipy.
    """
    models = np.atleast_2d(scores)
    area = float(np.mean([auc(of_model, relevant) for of_model in models]))
    numbers, of_pair = np.unique(queries, return_inverse=True)
    if len(np.unique(queries[relevant])) < MIN_QUERIES:
        return area, None
    orders = [np.argsort(-of_model, kind="stable") for of_model in models]
    in_order = [
        (of_model[order], relevant[order], of_pair[order])
        for of_model, order in zip(models, orders, strict=True)
    ]

    def resampled(drawn: NDArray[np.int64]) -> float:
        counts = np.bincount(drawn, minlength=len(numbers)).astype(float)
        weights = counts[of_pair]
        if not (weights @ relevant and weights @ ~relevant):
            return 0.5  # pairs of one kind tell nothing
        areas = [auc(values, kinds, counts[pairs]) for values, kinds, pairs in in_order]
        return float(np.mean(areas))

    every = np.arange(len(numbers))
    without_one = [resampled(np.delete(every, number)) for number in every]
    if np.ptp(without_one) < NO_SPREAD:  # the bootstrap is not defined
        return area, (area, area)
    return area, bootstrap_interval(
        every, resampled, seed=seed, resamples=resamples, vectorized=False
    )
