"""Which terms of the best documents should join the query? RM3, as Anserini computes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from birchbark.errors import InputError
from birchbark.index.layout import CONTENTS
from birchbark.index.reader import Index
from birchbark.records import Ranking

_USABLE = re.compile(r"[a-z0-9]{2,20}")


@dataclass(frozen=True, slots=True)
class RM3:
    """Relevance model 3 (Abdul-Jaleel et al. 2004) with Anserini's defaults.

    documents, terms: how many feedback documents are read and terms kept. original_weight: share of
    the original query, 0 to 1. max_df_share: terms in a larger share of all documents are left out,
    as are terms other than 2 to 20 of a-z and 0-9 (Lin 2019, arXiv:1904.08861).
    """

    documents: int = 10
    terms: int = 10
    original_weight: float = 0.5
    max_df_share: float = 0.1

    def __post_init__(self) -> None:
        if self.documents < 1 or self.terms < 1:
            raise InputError("RM3 needs at least one feedback document and one term")
        for name in ("original_weight", "max_df_share"):
            if not 0 <= (found := getattr(self, name)) <= 1:
                raise InputError(f"RM3's {name} is out of range", wanted="0 to 1", found=str(found))


def expand(
    index: Index,
    weights: Mapping[str, float],
    feedback: Ranking,
    model: RM3 = RM3(),
    field: str = CONTENTS,
) -> dict[str, float]:
    """The query `weights` mixed with the relevance model of the best documents in `feedback`.

    P(t|R) ∝ Σ_d score(d) · tf(t, d) / |d|, over the feedback documents' usable terms. Both sides
    are scaled to sum 1, then mixed by `original_weight`. Returns term → weight; the query itself
    where there is no feedback.
    """
    relevance = _relevance_model(index, feedback.head(model.documents), model, field)
    best = sorted(relevance.items(), key=lambda item: (-item[1], item[0]))[: model.terms]
    if not best:
        return dict(weights)
    original = _scaled(dict(weights), model.original_weight)
    added = _scaled(dict(best), 1 - model.original_weight)
    return {t: original.get(t, 0.0) + added.get(t, 0.0) for t in sorted(original | added)}


def _relevance_model(index: Index, feedback: Ranking, model: RM3, field: str) -> dict[str, float]:
    vectors = index.vectors(feedback.doc_ids, field)
    readable = sorted(term for term in set().union(*vectors) if _USABLE.fullmatch(term))
    most = model.max_df_share * len(index)
    frequencies = index.document_frequencies(readable, field)
    usable = {term for term, df in frequencies.items() if df <= most}
    total: dict[str, float] = {}
    for vector, (_, score) in zip(vectors, feedback, strict=True):
        length = sum(tf for term, tf in vector.items() if term in usable)
        for term, tf in vector.items():
            if term in usable:
                total[term] = total.get(term, 0.0) + score * tf / length
    return total


def _scaled(weights: dict[str, float], share: float) -> dict[str, float]:
    whole = sum(weights.values())
    return {term: share * weight / whole for term, weight in weights.items()} if whole else {}
