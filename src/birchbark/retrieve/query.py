"""What does a query ask for, as weighted terms?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from birchbark.errors import InputError
from birchbark.records import Rewording
from birchbark.text.analyzer import Analyzer

_WEIGHTED = re.compile(r"(\S+)\^([0-9.eE+-]+)")


def query_terms(analyzer: Analyzer, text: str) -> dict[str, float]:
    """The terms of `text` after the analyzer, weighted by how often each occurs."""
    return {term: float(count) for term, count in Counter(analyzer.terms(text)).items()}


def reworded_terms(
    analyzer: Analyzer, text: str, rewordings: Iterable[Rewording], share: float = 1.0
) -> dict[str, float]:
    """The terms of `text` and, times their weights and `share`, those of its rewordings.

    Scores are sums over terms, so this is BM25(Q) + Σ share · w_i · BM25(Q_i) (equation 5.1 of the
    cord paper).
    """
    weights = Counter(query_terms(analyzer, text))
    for one in rewordings:
        for term, count in query_terms(analyzer, one.text).items():
            weights[term] += share * one.weight * count  # type: ignore[assignment]
    return {term: float(weight) for term, weight in weights.items()}


def parse_weighted(text: str) -> dict[str, float]:
    """Index terms with weights: `term^weight`, separated by white space.

    The terms are taken as they stand: no analyzer. Raises InputError for anything else.
    """
    weights: dict[str, float] = {}
    for word in text.split():
        found = _WEIGHTED.fullmatch(word)
        try:
            weights[found[1] if found else ""] = float(found[2] if found else "")
        except ValueError:
            raise InputError("not a weighted term", found=word, wanted="term^weight") from None
    return weights


def format_weighted(weights: Mapping[str, float]) -> str:
    """Terms with their weights, the heaviest first."""
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return " ".join(f"{term}^{weight:.6g}" for term, weight in ordered)
