"""How does BM25 score the documents that hold a query's terms?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.reader import FieldPart
from birchbark.index.statistics import Statistics
from birchbark.retrieve.accumulate import add_bm25


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

    def add(
        self,
        scores: NDArray[np.float64],
        part: FieldPart,
        weights: Mapping[str, float],
        statistics: Statistics,
    ) -> None:
        """Add each document's score to `scores` (documents of the part,), term by sorted term."""
        average = max(statistics.average_length, 1e-9)
        floor, slope = self.k1 * (1 - self.b), self.k1 * self.b / average
        for term in sorted(weights):
            postings = part.postings(term)
            if postings is not None and weights[term]:
                weight = weights[term] * idf(statistics, term)
                add_bm25(scores, postings.docs, postings.tfs, part.lengths, weight, floor, slope)


def idf(statistics: Statistics, term: str) -> float:
    """ln(1 + (N − df + ½)/(df + ½))."""
    df = statistics.frequencies.get(term, 0)
    return math.log(1 + (statistics.totals.documents - df + 0.5) / (df + 0.5))
