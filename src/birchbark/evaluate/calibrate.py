"""Which scale turns a model's outputs for labelled pairs into probabilities of relevance?

A logistic regression of one variable (Platt 1999): the probability of relevance is
sigmoid((output − shift) / temperature). Relevant and other pairs have the same total weight, since
their numbers say how the pairs were chosen, and nothing about the model.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

MAX_STEPS = 100
TOLERANCE = 1e-10  # of the change of both coefficients in one step, relative to their size


def fit_scale(outputs: NDArray[np.float64], relevant: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the shift and the temperature with the highest likelihood.

    outputs: of the model for each pair (n,), in any unit. relevant: whether each pair is (n,).
    Raises InputError unless there are relevant and other pairs, some of whose outputs overlap and
    whose relevant ones are higher in the mean; and if a few outputs are so far from the others that
    no scale is found.
    """
    counts = int(relevant.sum()), int((~relevant).sum())
    if not all(counts):
        raise InputError(
            "the scale cannot be fitted",
            wanted="relevant and other pairs",
            found=f"{counts[0]} relevant pairs and {counts[1]} others",
        )
    if not np.isfinite(outputs).all():
        raise InputError("the scale cannot be fitted", found="outputs that are not finite numbers")
    if outputs[relevant].mean() <= outputs[~relevant].mean():
        raise InputError(
            "the scale cannot be fitted",
            wanted="higher outputs for relevant pairs",
            found="outputs of other pairs are as high in the mean",
        )
    if outputs[relevant].min() >= outputs[~relevant].max():  # no scale is the best one
        raise InputError(
            "the scale cannot be fitted",
            wanted="pairs whose outputs overlap",
            found="no relevant pair has a lower output than another pair",
            remedy="harder negatives, such as passages that BM25 ranks high",
        )
    weights = np.where(relevant, 0.5 / counts[0], 0.5 / counts[1])  # (n,)
    centre, width = float(outputs.mean()), float(outputs.std())
    inputs = np.stack([(outputs - centre) / width, np.ones(len(outputs))])  # (2, n)
    coefficients = np.zeros(2)  # slope and intercept
    with suppress(np.linalg.LinAlgError), np.errstate(over="ignore"):
        for _ in range(MAX_STEPS):  # Newton's method; the likelihood is concave
            probabilities = 1 / (1 + np.exp(-(coefficients @ inputs)))
            gradient = inputs @ (weights * (relevant - probabilities))
            curvature = (inputs * (weights * probabilities * (1 - probabilities))) @ inputs.T
            step = np.linalg.solve(curvature, gradient)
            coefficients += step
            if abs(step).max() <= TOLERANCE * max(1.0, abs(coefficients).max()):
                slope, intercept = coefficients.tolist()
                return centre - intercept * width / slope, width / slope
    raise InputError(
        "the scale cannot be fitted", found="a few outputs that are very far from the others"
    )
