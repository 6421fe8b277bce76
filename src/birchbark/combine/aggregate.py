"""How are the scores of a document's segments aggregated into one document score?

An aggregation maps the scores (n,) of a document's segments, in document order, to weights (n,).
The document's score is Σ weight · score; a document without segments scores 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.records import Float32s, best_first

Weights = NDArray[np.float64]


class Aggregation(Protocol):
    """How segment scores become segment weights; any class with these two methods will do.

    The evidence of a document is Σ weight · score over its segments.
    """

    def weights(self, scores: Float32s) -> Weights:
        """Return the weight of each segment.

        Args:
            scores: The scores (n,) of a document's segments, in document order.

        Returns:
            The weights (n,), each at least 0.
        """
        ...

    def max_evidence(self, segments: int | None = None) -> float:
        """Return the highest possible Σ weight · score for segment scores in [0, 1].

        Args:
            segments: The number of segments. Defaults to None: unknown.
        """
        ...


@dataclass(frozen=True, slots=True)
class Top:
    """Σ w_i · s_i over the highest scores s_1 ≥ s_2 ≥ …, as in equation 3.2 of the birch paper.

    With the weight 1 alone, it is the highest score (MaxP). Of segments with equal scores, the
    earlier one ranks first.

    Attributes:
        by_rank: The weights w_1, w_2, … of the highest score, the second highest, and so on: one or
            more finite numbers, each at least 0. Defaults to (1.0, 0.5, 0.25).
    """

    by_rank: tuple[float, ...] = defaults.TOP_WEIGHTS

    def __post_init__(self) -> None:
        given: object = self.by_rank
        is_list = isinstance(given, tuple | list)
        if not (is_list and self.by_rank and all(map(_is_weight, self.by_rank))):
            raise InputError(
                "invalid weights for the top segments",
                wanted="one or more finite numbers, each at least 0",
                found=(", ".join(map(str, self.by_rank)) or "none") if is_list else str(given),
            )

    def weights(self, scores: Float32s) -> Weights:
        """Give the segment with the i-th highest score the i-th weight, and all others 0."""
        best = best_first(scores, len(self.by_rank))
        weights = np.zeros(len(scores))
        weights[best] = self.by_rank[: len(best)]
        return weights

    def max_evidence(self, segments: int | None = None) -> float:
        """Return the sum of the first `segments` weights; of all if the number is unknown."""
        return sum(self.by_rank[:segments])


def _is_weight(value: object) -> bool:
    return isinstance(value, Real) and 0 <= value < math.inf  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class TopMean:
    """The weighted mean of the highest scores: Σ w_i · s_i / Σ w_i, over as many as there are.

    A document with a single segment is not at a disadvantage to one with many, as it is under
    `Top`; so short and long documents can be ranked together.

    Attributes:
        by_rank: The weights w_1, w_2, …; see `Top`. Defaults to (1.0, 0.5, 0.25).
    """

    by_rank: tuple[float, ...] = defaults.TOP_WEIGHTS

    def __post_init__(self) -> None:
        Top(self.by_rank)  # checks the weights

    def weights(self, scores: Float32s) -> Weights:
        """Give the segment with the i-th highest score the i-th weight; the sum is 1."""
        weights = Top(self.by_rank).weights(scores)
        total = sum(self.by_rank[: len(scores)])
        return weights / total if total else weights

    def max_evidence(self, segments: int | None = None) -> float:
        """Return 1, or 0 for a document without segments."""
        return float(segments != 0)


@dataclass(frozen=True, slots=True)
class First:
    """The score of the first segment (FirstP). It has no settings."""

    def weights(self, scores: Float32s) -> Weights:
        """Give the first segment weight 1, and all others 0."""
        weights = np.zeros(len(scores))
        weights[:1] = 1
        return weights

    def max_evidence(self, segments: int | None = None) -> float:
        """Return 1, or 0 for a document without segments."""
        return float(segments != 0)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of all segment scores (SumP). It has no settings."""

    def weights(self, scores: Float32s) -> Weights:
        """Give every segment weight 1."""
        return np.ones(len(scores))

    def max_evidence(self, segments: int | None = None) -> float:
        """Return the number of segments; infinity if it is unknown."""
        return math.inf if segments is None else float(segments)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of all segment scores (MeanP). It has no settings."""

    def weights(self, scores: Float32s) -> Weights:
        """Give each of n segments weight 1/n."""
        return np.full(len(scores), 1 / max(1, len(scores)))

    def max_evidence(self, segments: int | None = None) -> float:
        """Return 1, or 0 for a document without segments."""
        return float(segments != 0)


BY_NAME: dict[str, Callable[[], Aggregation]] = {
    "first": First,
    "max": partial(Top, (1.0,)),
    "sum": Sum,
    "mean": Mean,
}


BY_WEIGHTS: dict[str, Callable[[tuple[float, ...]], Aggregation]] = {
    "top": Top,
    "topmean": TopMean,
}


def parse_aggregation(text: str) -> Aggregation:
    """Parse the name of an aggregation: first, max, sum, mean, top:W1,W2,… or topmean:W1,W2,…"""
    if text in BY_NAME:
        return BY_NAME[text]()
    name, _, weights = text.partition(":")
    if name in BY_WEIGHTS and weights:
        try:
            return BY_WEIGHTS[name](tuple(float(w) for w in weights.split(",")))
        except ValueError:
            pass
    raise InputError(
        f"unknown aggregation {text!r}",
        wanted=f"{', '.join(BY_NAME)}, top:W1,W2,… or topmean:W1,W2,… such as "
        f"{defaults.AGGREGATION}",
    )


@dataclass(frozen=True, slots=True, eq=False)
class AggregatedEvidence:
    """The evidence of one document, Σ weight · score over its segments.

    scores: float32 (n,). weights: float64 (n,). For a model that scores whole documents (PARADE),
    every score is the document's score, and the weights sum to 1.
    """

    evidence: float
    scores: Float32s
    weights: Weights


def aggregate(scores: Float32s, aggregation: Aggregation, unread: int = 0) -> AggregatedEvidence:
    """Aggregate the segment scores (n,) of one document.

    unread: how many further segments the document has, whose scores count as 0. Default: none.
    """
    known = len(scores)
    all_scores = np.concatenate([scores, np.zeros(unread, np.float32)]) if unread else scores
    weights = aggregation.weights(all_scores)[:known]
    return AggregatedEvidence(weighted_sum(scores, weights), scores, weights)


def bounds_from_below(aggregation: Aggregation) -> bool:
    """Return whether evidence in which any scores are replaced by 0 is a lower bound.

    So it is with the segments that were not read as `unread`. False if unknown.
    """
    return isinstance(aggregation, (Top, TopMean, Sum))


def weighted_sum(scores: Float32s, weights: Weights) -> float:
    """Return Σ weight · score in float64, added from the largest product to the smallest.

    Because of this order, the sum depends on the order of the segments only if the weights do.
    """
    return float(np.sort(weights * scores.astype(np.float64))[::-1].sum())
