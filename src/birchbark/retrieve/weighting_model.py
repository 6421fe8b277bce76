"""What must a weighting model such as BM25 define to score documents from their postings?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark.index.part import PartField
from birchbark.index.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Scoring:
    """How a query scores documents: score = Σ_t weight_t · tf / (saturation · tf + norm).

    tf is the frequency of term t in the document, norm the document's norm.

    weights: term → weight, 0 or more. limits: term → an upper bound of what it adds to a score.
    saturation: the factor of tf in the denominator. floor, slope: a lower bound of the norm of
    every document, norm ≥ floor + slope · length.
    """

    weights: Mapping[str, float]
    limits: Mapping[str, float]
    saturation: float
    floor: float
    slope: float


class WeightingModel(Protocol):
    """A way to score the documents of one field, such as BM25 or TfIdf.

    all_terms: whether it needs the document frequencies of all terms, not only of the query's.
    """

    all_terms: ClassVar[bool]

    def scoring(self, weights: Mapping[str, float], statistics: Statistics) -> Scoring:
        """Return how a query scores documents, given the statistics of the field.

        weights: term → weight in the query.
        """
        ...

    def norms(self, field: PartField, statistics: Statistics) -> NDArray[np.float64]:
        """Return the norm of each document in a part, (documents,): above 0, or infinity."""
        ...
