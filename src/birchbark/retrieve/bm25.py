"""How does BM25 score the documents that hold a query's terms?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.part_reader import FieldPart
from birchbark.index.statistics import Statistics
from birchbark.retrieve.model import Scoring


@dataclass(frozen=True, slots=True)
class BM25:
    """BM25 as Lucene 8 and later compute it; chosen at query time.

    score(q, d) = Σ_t w_t · idf_t · tf / (tf + k1·(1 − b + b·|d|/avg)), with
    idf_t = ln(1 + (N − df + ½)/(df + ½)). Robertson & Zaragoza's factor (k1 + 1) is left out, as in
    Lucene: it changes no ranking. Lengths are exact (Lucene rounds them to one byte).
    The defaults are Anserini's; the passages paper has k1 1.2, b 0.75.
    """

    all_terms: ClassVar[bool] = False

    k1: float = 0.9
    b: float = 0.4

    def __post_init__(self) -> None:
        if not (self.k1 >= 0 and math.isfinite(self.k1)):
            raise InputError("k1 is out of range", wanted="0 or more", found=str(self.k1))
        if not 0 <= self.b <= 1:
            raise InputError("b is out of range", wanted="0 to 1", found=str(self.b))

    def scoring(self, weights: Mapping[str, float], statistics: Statistics) -> Scoring:
        """How the query `weights` is scored in a field with these statistics."""
        found = {term: weight * idf(statistics, term) for term, weight in weights.items()}
        floor, slope = self._line(statistics)
        return Scoring(found, found, 1.0, floor, slope)

    def norms(self, field: FieldPart, statistics: Statistics) -> NDArray[np.float64]:
        """k1·(1 − b + b·|d|/avg) of each document, (documents,)."""
        floor, slope = self._line(statistics)
        return np.asarray(floor + slope * field.lengths, np.float64)

    def _line(self, statistics: Statistics) -> tuple[float, float]:
        """The norm of a document without terms, and by how much each term raises it."""
        average = max(statistics.average_length, 1e-9)
        return self.k1 * (1 - self.b), self.k1 * self.b / average


def idf(statistics: Statistics, term: str) -> float:
    """ln(1 + (N − df + ½)/(df + ½))."""
    df = statistics.frequencies.get(term, 0)
    return math.log(1 + (statistics.totals.documents - df + 0.5) / (df + 0.5))
