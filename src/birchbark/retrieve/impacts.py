"""How do weights of terms score a document, as those of SPLADE do?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import require_at_least
from birchbark.index.part import PartField
from birchbark.index.statistics import Statistics
from birchbark.index.weighted_terms import MAX_IMPACT
from birchbark.retrieve.weighting_model import Scoring


@dataclass(frozen=True, slots=True)
class Impacts:
    """The dot product of the query's weights and the document's: learned sparse retrieval.

    score(q, d) = Σ_t w_t · impact_t / steps. A weighted field is always scored so, whatever the
    model of the other fields. Formal et al. 2021 (SPLADE); Lin & Ma 2021 (uniCOIL).

    Attributes:
        steps: Steps per 1 of weight, as the index stores them.
    """

    all_terms: ClassVar[bool] = False

    steps: int

    def __post_init__(self) -> None:
        require_at_least("steps", self.steps, 1)

    def scoring(self, weights: Mapping[str, float], statistics: Statistics) -> Scoring:
        """Return how the query `weights` scores documents, given the statistics of the field."""
        per_step = {term: weight / self.steps for term, weight in weights.items()}
        limits = {term: weight * MAX_IMPACT for term, weight in per_step.items()}
        return Scoring(per_step, limits, 0.0, 1.0, 0.0)

    def norms(self, field: PartField, statistics: Statistics) -> NDArray[np.float64]:
        """Return 1 for each document, (documents,)."""
        return np.ones(len(field.lengths))
