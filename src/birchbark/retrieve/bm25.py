"""Which documents hold the query's terms, and how does BM25 rank them?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.layout import CONTENTS
from birchbark.index.reader import Index, Postings
from birchbark.records import Ranking
from birchbark.retrieve.accumulate import add_bm25

DEPTH = 1000
Array = NDArray[Any]


class Match(StrEnum):
    """Which documents are candidates: those with any of the query's terms, or with all of them."""

    OR = "or"
    AND = "and"


@dataclass(frozen=True, slots=True)
class BM25:
    """BM25 as Lucene 8 and later compute it; chosen at query time.

    score(q, d) = Σ_t w_t · idf_t · tf / (tf + k1·(1 − b + b·|d|/avg)), with
    idf_t = ln(1 + (N − df + ½)/(df + ½)). Robertson & Zaragoza's factor (k1 + 1) is left out, as in
    Lucene: it changes no ranking. Lengths are exact (Lucene rounds them to one byte).
    The defaults are Anserini's.
    """

    k1: float = 0.9
    b: float = 0.4

    def __post_init__(self) -> None:
        if not (self.k1 >= 0 and math.isfinite(self.k1)):
            raise InputError("k1 is out of range", wanted="0 or more", found=str(self.k1))
        if not 0 <= self.b <= 1:
            raise InputError("b is out of range", wanted="0 to 1", found=str(self.b))


def term_weights(index: Index, text: str) -> dict[str, float]:
    """The query's terms after the index's analyzer, weighted by how often each occurs."""
    return dict(Counter[str](index.analyzer.terms(text)))


def rank(
    index: Index,
    weights: Mapping[str, float],
    model: BM25 = BM25(),
    *,
    required: Collection[str] = (),
    field: str = CONTENTS,
    depth: int = DEPTH,
) -> Ranking:
    """The `depth` best documents by BM25 over weighted terms.

    weights: term → weight > 0; terms of weight 0 are ignored. required: a candidate holds all of
    these terms; without them, any term of `weights`. Terms are added up in sorted order and in
    float64, so the scores do not depend on how the index is divided into parts.
    """
    number, totals = index.field_number(field), index.totals(field)
    average = totals.tokens / max(1, totals.documents)
    floor, slope = model.k1 * (1 - model.b), model.k1 * model.b / max(average, 1e-9)
    idf = _idfs(index, field, totals.documents, weights)
    doc_ids: list[str] = []
    scores: list[Array] = []
    for part in index.parts:
        field_part = part.fields[number]
        total = np.zeros(part.documents)
        for term in sorted(idf):
            if postings := field_part.postings(term):
                weight = weights[term] * idf[term]
                add_bm25(
                    total, postings.docs, postings.tfs, field_part.lengths, weight, floor, slope
                )
        if part.deleted is not None:
            total[part.deleted] = 0
        hits = _candidates(total, (field_part.postings(term) for term in sorted(required)))
        best = _best(total[hits].astype(np.float32), depth)
        doc_ids += part.doc_ids.take(hits[best].tolist())
        scores.append(total[hits[best]])
    return Ranking.of(doc_ids, np.concatenate([*scores, []]), depth)


def _idfs(
    index: Index, field: str, documents: int, weights: Mapping[str, float]
) -> dict[str, float]:
    """Lucene's idf of each term that has a weight and occurs in the index."""
    if negative := [term for term, weight in weights.items() if weight < 0]:
        raise InputError(f"term {negative[0]!r} has a negative weight")
    frequencies = {t: index.document_frequency(t, field) for t, weight in weights.items() if weight}
    return {
        term: math.log(1 + (documents - df + 0.5) / (df + 0.5))
        for term, df in frequencies.items()
        if df
    }


def _candidates(total: Array, required: Iterable[Postings | None]) -> Array:
    """Numbers of the documents with a score that are in all the required postings."""
    matching = total > 0
    for postings in required:
        here = np.zeros_like(matching)
        if postings:
            here[postings.docs] = True
        matching &= here
    return np.flatnonzero(matching)


def _best(scores: Array, depth: int) -> Array:
    """Positions of all scores that reach the depth-th best one: ties at the cut stay in."""
    if len(scores) <= depth:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - depth)[len(scores) - depth])
