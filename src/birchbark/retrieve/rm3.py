"""Which terms of the best documents should be added to the query? RM3, as in Anserini."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from birchbark import defaults
from birchbark.errors import require_at_least, require_share
from birchbark.index.index import Index
from birchbark.index.layout import CONTENTS
from birchbark.records import Ranking

_EXPANSION_TERM = re.compile(r"[a-z0-9]{2,20}")


@dataclass(frozen=True, slots=True)
class RM3:
    """Query expansion by relevance model 3 (Abdul-Jaleel et al. 2004), with Anserini's defaults.

    Only terms of 2 to 20 characters from a-z and 0-9 are added (Lin 2019, arXiv:1904.08861).

    Attributes:
        documents: Number of feedback documents, 1 or more. Default 10.
        terms: Number of expansion terms, 1 or more. Default 10.
        original_weight: Weight of the original query in the expanded one, 0 to 1. Default 0.5.
        max_df_share: Terms that occur in a larger share of all documents than this are not added;
            0 to 1. Default 0.1.
    """

    documents: int = defaults.RM3_DOCUMENTS
    terms: int = defaults.RM3_TERMS
    original_weight: float = defaults.RM3_ORIGINAL_WEIGHT
    max_df_share: float = defaults.RM3_MAX_DF_SHARE

    def __post_init__(self) -> None:
        for name in ("documents", "terms"):
            require_at_least(f"number of RM3's {name}", getattr(self, name), 1)
        for name in ("original_weight", "max_df_share"):
            require_share(f"RM3's {name}", getattr(self, name))


def expand(
    index: Index,
    weights: Mapping[str, float],
    feedback: Ranking,
    model: RM3 = RM3(),
    field: str = CONTENTS,
) -> dict[str, float]:
    """Interpolate the query `weights` with a relevance model of the best documents in `feedback`.

    P(t|R) ∝ Σ_d score(d) · tf(t, d) / |d|. As in Anserini, of the terms that may be added, each d
    has only its `model.terms` most frequent ones (of equal frequency, the first by spelling), and
    |d| is the sum of their frequencies. Query and relevance model are normalised to a sum of 1,
    then interpolated with `original_weight`. Returns term → weight, or the query unchanged if no
    term can be added.
    """
    relevance = _relevance_model(index, feedback.head(model.documents), model, field)
    best = _largest(relevance, model.terms)
    if not best:
        return dict(weights)
    original = _scaled(dict(weights), model.original_weight)
    added = _scaled(best, 1 - model.original_weight)
    return {t: original.get(t, 0.0) + added.get(t, 0.0) for t in sorted(original | added)}


def _relevance_model(index: Index, feedback: Ranking, model: RM3, field: str) -> dict[str, float]:
    vectors = index.term_vectors(feedback.doc_ids, field)
    terms = sorted(term for term in set().union(*vectors) if _EXPANSION_TERM.fullmatch(term))
    max_df = model.max_df_share * len(index)
    frequencies = index.document_frequencies(terms, field)
    usable = {term for term, df in frequencies.items() if df <= max_df}
    relevance: dict[str, float] = {}
    for vector, (_, score) in zip(vectors, feedback, strict=True):
        best = _largest({term: tf for term, tf in vector.items() if term in usable}, model.terms)
        length = sum(best.values())
        for term, tf in best.items():
            relevance[term] = relevance.get(term, 0.0) + score * tf / length
    return relevance


def _largest(weights: Mapping[str, float], number: int) -> dict[str, float]:
    """Return the `number` terms of the largest weights; of equal weights, the first by spelling."""
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:number])


def _scaled(weights: dict[str, float], total: float) -> dict[str, float]:
    """Scale `weights` to the sum `total`; return an empty dict if their sum is 0."""
    before = sum(weights.values())
    return {term: total * weight / before for term, weight in weights.items()} if before else {}
