"""How similar are query and document as tf-idf vectors?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from birchbark.index.part_reader import FieldPart, cuts
from birchbark.index.statistics import Statistics
from birchbark.retrieve.model import Scoring


@dataclass(frozen=True, slots=True)
class TfIdf:
    """Vector space model: the cosine of tf · idf vectors, in [0, 1], with idf = ln(N/df).

    The passages paper's equation 2.1. A term that every document holds has no weight, and one that
    none holds is left out of the query.
    """

    all_terms: ClassVar[bool] = True

    def scoring(self, weights: Mapping[str, float], statistics: Statistics) -> Scoring:
        """How the query `weights` is scored in a field with these statistics."""
        idfs = {term: idf(statistics, term) for term in weights}
        length = math.sqrt(math.fsum((w * idfs[t]) ** 2 for t, w in weights.items()))
        shares = {t: w * idfs[t] / length if length else 0.0 for t, w in weights.items()}
        products = {term: share * idfs[term] for term, share in shares.items()}
        return Scoring(products, shares, 0.0, 0.0, 0.0)

    def norms(self, field: FieldPart, statistics: Statistics) -> NDArray[np.float64]:
        """Length of each document's tf · idf vector, (documents,); infinite instead of 0."""
        squares = np.zeros(len(field.lengths))
        weights = np.array([idf(statistics, term) for term in field.terms()])
        for begin, end in pairwise(cuts(field.sizes())):
            sizes, postings = field.lists(begin, end)
            addends = (np.repeat(weights[begin:end], sizes) * postings.tfs) ** 2
            squares += np.bincount(postings.docs, addends, len(squares))
        return np.sqrt(np.where(squares > 0, squares, np.inf))


def idf(statistics: Statistics, term: str) -> float:
    """ln(N/df), with N the documents that hold any term; 0 for a term in no document."""
    df = statistics.frequencies.get(term, 0)
    return math.log(statistics.totals.documents / df) if df else 0.0
