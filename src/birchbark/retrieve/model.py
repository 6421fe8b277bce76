"""What must a model say, so that documents can be scored from posting lists alone?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark.index.part_reader import FieldPart
from birchbark.index.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Scoring:
    """The score of a document is Σ_t weight_t · tf / (saturation · tf + norm).

    weights: term → weight, 0 or more. limits: term → what it adds to any document at most.
    norm ≥ floor + slope · length holds for every document.
    """

    weights: Mapping[str, float]
    limits: Mapping[str, float]
    saturation: float
    floor: float
    slope: float


class Model(Protocol):
    """A way to score the documents of one field: BM25, TfIdf.

    all_terms: whether it needs the statistics of every term, not those of the query alone.
    """

    all_terms: ClassVar[bool]

    def scoring(self, weights: Mapping[str, float], statistics: Statistics) -> Scoring:
        """How a query of weighted terms is scored in a field with these statistics."""
        ...

    def norms(self, field: FieldPart, statistics: Statistics) -> NDArray[np.float64]:
        """The norm of each document of a part, (documents,), above 0; infinite where none fits."""
        ...
