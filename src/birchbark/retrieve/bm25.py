"""How does BM25 score a document?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.errors import InputError, require_number, require_share
from birchbark.index.part import PartField
from birchbark.index.statistics import Statistics
from birchbark.retrieve.weighting_model import Scoring

IDF_DOCUMENTS = FIELD, ALL = "field", "all"


@dataclass(frozen=True, slots=True)
class BM25:
    """BM25 as computed by Lucene 8 and later; k1 and b are chosen at query time.

    score(q, d) = Σ_t w_t · idf_t · tf / (tf + k1·(1 − b + b·|d|/avg)), with
    idf_t = ln(1 + (N − df + ½)/(df + ½)).

    w_t is the weight of term t in the query, tf its frequency in the field of the document, |d| the
    number of terms in that field and avg its mean over the documents that have any. df is the
    number of documents that contain t in the field, and N the number of documents that have any
    term in it, as in Lucene, or of all documents. The factor (k1 + 1) of Robertson & Zaragoza
    (2009) is omitted, as in Lucene; it does not change any ranking. Lengths are exact, whereas
    Lucene rounds them to one byte. The defaults are Anserini's; the passages paper uses k1 = 1.2
    and b = 0.75.

    Attributes:
        k1: How slowly a term's contribution saturates as its frequency grows; 0 or more. With 0,
            the frequency has no effect. Default 0.9.
        b: How strongly scores are normalised by document length, from 0 (not at all) to 1 (fully).
            Default 0.4.
        idf_documents: What N counts: the documents with a term in the field (`field`) or `all`
            documents, as in equation 3.14 of the cord paper. They differ for fields that many
            documents lack. Default `field`.
    """

    all_terms: ClassVar[bool] = False

    k1: float = defaults.BM25_K1
    b: float = defaults.BM25_B
    idf_documents: str = defaults.IDF_DOCUMENTS

    def __post_init__(self) -> None:
        if self.idf_documents not in IDF_DOCUMENTS:
            raise InputError(
                "unknown documents for idf",
                wanted=" or ".join(IDF_DOCUMENTS),
                found=self.idf_documents,
            )
        require_number("k1", self.k1)
        if not (self.k1 >= 0 and math.isfinite(self.k1)):
            raise InputError("k1 is out of range", wanted="0 or more", found=str(self.k1))
        require_share("b", self.b)

    def scoring(self, weights: Mapping[str, float], statistics: Statistics) -> Scoring:
        """Return how the query `weights` scores documents, given the statistics of the field."""
        counts_all = self.idf_documents == ALL
        documents = statistics.documents if counts_all else statistics.totals.documents
        frequencies = statistics.frequencies
        weighted = {t: w * bm25_idf(documents, frequencies.get(t, 0)) for t, w in weights.items()}
        floor, slope = self._norm_line(statistics)
        return Scoring(weighted, weighted, 1.0, floor, slope)

    def norms(self, field: PartField, statistics: Statistics) -> NDArray[np.float64]:
        """Return k1·(1 − b + b·|d|/avg) for each document, (documents,)."""
        floor, slope = self._norm_line(statistics)
        return np.asarray(floor + slope * field.lengths, np.float64)

    def _norm_line(self, statistics: Statistics) -> tuple[float, float]:
        """Return the norm of an empty document, and the increase of the norm per term."""
        average = max(statistics.average_length, 1e-9)
        return self.k1 * (1 - self.b), self.k1 * self.b / average


def bm25_idf(documents: int, df: int) -> float:
    """Return ln(1 + (N − df + ½)/(df + ½)). documents: N."""
    return math.log(1 + (documents - df + 0.5) / (df + 0.5))
