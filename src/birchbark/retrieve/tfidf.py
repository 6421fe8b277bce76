"""How similar are query and document as tf-idf vectors?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from birchbark.index.part import PartField, chunk_bounds
from birchbark.index.statistics import Statistics
from birchbark.retrieve.weighting_model import Scoring


@dataclass(frozen=True, slots=True)
class TfIdf:
    """The vector space model: a document's score is the cosine of tf · idf vectors, 0 to 1.

    See equation 2.1 of the passages paper. idf = ln(N/df), where N is the number of documents with
    a term in the field and df the number of documents that contain this term. A term that occurs in
    all N documents has weight 0; a term that occurs in none is left out of the query. The model has
    no parameters.
    """

    all_terms: ClassVar[bool] = True

    def scoring(self, weights: Mapping[str, float], statistics: Statistics) -> Scoring:
        """Return how the query `weights` scores documents, given the statistics of the field."""
        idfs = {term: idf_without_smoothing(statistics, term) for term in weights}
        length = math.sqrt(math.fsum((w * idfs[t]) ** 2 for t, w in weights.items()))
        unit = {t: w * idfs[t] / length if length else 0.0 for t, w in weights.items()}
        products = {term: weight * idfs[term] for term, weight in unit.items()}
        return Scoring(products, unit, 0.0, 0.0, 0.0)

    def norms(self, field: PartField, statistics: Statistics) -> NDArray[np.float64]:
        """Return the length of each document's tf · idf vector, (documents,); infinity for 0."""
        squares = np.zeros(len(field.lengths))  # (documents,)
        idfs = np.array(
            [idf_without_smoothing(statistics, term) for term in field.terms()]
        )  # (terms,)
        for begin, end in pairwise(chunk_bounds(field.list_sizes())):
            sizes, postings = field.read_lists(begin, end)
            addends = (np.repeat(idfs[begin:end], sizes) * postings.tfs) ** 2  # (postings,)
            squares += np.bincount(postings.docs, addends, len(squares))
        return np.sqrt(np.where(squares > 0, squares, np.inf))


def idf_without_smoothing(statistics: Statistics, term: str) -> float:
    """Return ln(N/df), where N counts documents with any term; 0 for a term in no document."""
    df = statistics.frequencies.get(term, 0)
    return math.log(statistics.totals.documents / df) if df else 0.0
