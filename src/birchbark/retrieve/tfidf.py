"""How similar are query and document as tf-idf vectors?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from birchbark.index.reader import FieldPart
from birchbark.index.statistics import Statistics
from birchbark.retrieve.accumulate import add_products, add_squares

Norms = NDArray[np.float64]
_norms: WeakKeyDictionary[FieldPart, tuple[Statistics, Norms]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class TfIdf:
    """Vector space model: the cosine of tf · idf vectors, in [0, 1], with idf = ln(N/df).

    The passages paper's equation 2.1. A term that every document holds has no weight, and one that
    none holds is left out of the query.
    """

    all_terms: ClassVar[bool] = True

    def add(
        self,
        scores: NDArray[np.float64],
        part: FieldPart,
        weights: Mapping[str, float],
        statistics: Statistics,
    ) -> None:
        """Add each document's cosine to `scores` (documents of the part,)."""
        query = {t: w * idf(statistics, t) for t, w in weights.items() if w}
        length = math.sqrt(math.fsum(w * w for w in query.values()))
        if not length:
            return
        products = np.zeros_like(scores)
        for term in sorted(query):
            postings = part.postings(term)
            if postings is not None:
                weight = query[term] * idf(statistics, term)
                add_products(products, postings.docs, postings.tfs, weight)
        norms = document_norms(part, statistics)
        found = norms > 0
        scores[found] += products[found] / (length * norms[found])


def idf(statistics: Statistics, term: str) -> float:
    """ln(N/df), with N the documents that hold any term; 0 for a term in no document."""
    df = statistics.frequencies.get(term, 0)
    return math.log(statistics.totals.documents / df) if df else 0.0


def document_norms(part: FieldPart, statistics: Statistics) -> Norms:
    """Length of each document's vector (documents,); remembered while part and statistics last."""
    known = _norms.get(part)
    if known is None or known[0] is not statistics:
        squares = np.zeros(len(part.lengths))
        weights = np.array([idf(statistics, term) for term in part.terms])
        add_squares(squares, part.starts, part.docs, part.tfs, weights)
        known = _norms[part] = (statistics, np.sqrt(squares))
    return known[1]
