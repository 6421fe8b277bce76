"""How do the scores of a document's segments become one score?

Each aggregation turns scores (n,) in document order into weights (n,): the document's score is
Σ weight · score, and the weights say how much each segment counted. No segments, no score: 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.records import Float32s

Weights = NDArray[np.float64]


class Aggregation(Protocol):
    """Segments → document."""

    def weights(self, scores: Float32s) -> Weights:
        """Weight (n,) of each segment, for scores (n,) in document order."""
        ...

    def most(self, segments: int | None = None) -> float:
        """The highest evidence that so many segments with scores in [0, 1] can have; None: any."""
        ...


@dataclass(frozen=True, slots=True)
class Top:
    """Σ w_i · s_i over the highest scores, s_1 the highest: the birch paper's equation 3.2.

    Of equal scores, the earlier segment counts as the higher.
    """

    by_rank: tuple[float, ...] = (1.0, 0.5, 0.25)

    def __post_init__(self) -> None:
        if not self.by_rank or not all(0 <= weight < math.inf for weight in self.by_rank):
            raise InputError(
                "not weights of the top segments",
                wanted="finite numbers from 0 up, one at least",
                found=", ".join(map(str, self.by_rank)) or "none",
            )

    def weights(self, scores: Float32s) -> Weights:
        """The i-th highest score gets the i-th weight, all others 0."""
        best = np.argsort(-scores, kind="stable")[: len(self.by_rank)]
        weights = np.zeros(len(scores))
        weights[best] = self.by_rank[: len(best)]
        return weights

    def most(self, segments: int | None = None) -> float:
        """The sum of the first weights."""
        return sum(self.by_rank[:segments])


@dataclass(frozen=True, slots=True)
class First:
    """The first segment's score (FirstP)."""

    def weights(self, scores: Float32s) -> Weights:
        """1 for the first segment."""
        weights = np.zeros(len(scores))
        weights[:1] = 1
        return weights

    def most(self, segments: int | None = None) -> float:
        """1 where there is a segment."""
        return float(segments != 0)


@dataclass(frozen=True, slots=True)
class Max:
    """The highest score (MaxP)."""

    def weights(self, scores: Float32s) -> Weights:
        """1 for the highest score; for the earliest of equals."""
        return Top((1.0,)).weights(scores)

    def most(self, segments: int | None = None) -> float:
        """1 where there is a segment."""
        return float(segments != 0)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of all scores (SumP)."""

    def weights(self, scores: Float32s) -> Weights:
        """1 for every segment."""
        return np.ones(len(scores))

    def most(self, segments: int | None = None) -> float:
        """Their number."""
        return math.inf if segments is None else float(segments)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of all scores (MeanP)."""

    def weights(self, scores: Float32s) -> Weights:
        """1/n for every segment."""
        return np.full(len(scores), 1 / max(1, len(scores)))

    def most(self, segments: int | None = None) -> float:
        """1 where there is a segment."""
        return float(segments != 0)


BY_NAME: dict[str, Callable[[], Aggregation]] = {
    "first": First,
    "max": Max,
    "sum": Sum,
    "mean": Mean,
}


def parse_aggregation(text: str) -> Aggregation:
    """The aggregation that `text` names: first, max, sum, mean, or top:W1,W2,…"""
    if text in BY_NAME:
        return BY_NAME[text]()
    name, _, weights = text.partition(":")
    if name == "top" and weights:
        try:
            return Top(tuple(float(w) for w in weights.split(",")))
        except ValueError:
            pass
    raise InputError(
        f"unknown aggregation {text!r}",
        remedy=f"one of {', '.join(BY_NAME)}, or top:1,0.5,0.25 with weights of your choice",
    )


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A document's evidence, Σ weight · score of its segments.

    scores: float32 (n,). weights: (n,). Of a model that judges documents as a whole, each score is
    the document's, and weights are shares that add up to 1.
    """

    evidence: float
    scores: Float32s
    weights: Weights


def judged(scores: Float32s, aggregation: Aggregation) -> Judged:
    """The evidence of a document whose segments have these scores (n,)."""
    weights = aggregation.weights(scores)
    return Judged(aggregate(scores, weights), scores, weights)


def aggregate(scores: Float32s, weights: Weights) -> float:
    """Σ weight · score in float64, added up from the largest product to the smallest.

    So the sum does not depend on the order of the segments where the weights do not.
    """
    return float(np.sort(weights * scores.astype(np.float64))[::-1].sum())
