"""How does the text of a query become weighted terms?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.records import QueryVariant
from birchbark.text.analyzer import Analyzer

_WEIGHTED_TERM = re.compile(r"(\S+)\^([0-9.eE+-]+)")


def query_terms(analyzer: Analyzer, text: str) -> dict[str, float]:
    """Analyze `text`; return term → number of occurrences."""
    return {term: float(count) for term, count in Counter(analyzer.terms(text)).items()}


def terms_with_variants(
    analyzer: Analyzer,
    text: str,
    variants: Iterable[QueryVariant],
    share: float = defaults.VARIANT_WEIGHT,
) -> dict[str, float]:
    """Return the weighted terms of a query and its variants.

    The terms of variant i are multiplied by its weight w_i and by `share`. Since scores are sums
    over terms, this ranks by BM25(Q) + Σ_i share · w_i · BM25(Q_i), equation 5.1 of the cord paper.
    """
    weights = Counter(query_terms(analyzer, text))
    for variant in variants:
        for term, count in query_terms(analyzer, variant.text).items():
            weights[term] += share * variant.weight * count  # type: ignore[assignment]
    return {term: float(weight) for term, weight in weights.items()}


def parse_weighted(text: str) -> dict[str, float]:
    """Parse index terms with weights: `term^weight`, separated by white space.

    The terms are used as written, without analysis. Raises InputError for a word of another form.
    """
    weights: dict[str, float] = {}
    for word in text.split():
        match = _WEIGHTED_TERM.fullmatch(word)
        try:
            weights[match[1] if match else ""] = float(match[2] if match else "")
        except ValueError:
            raise InputError("not a weighted term", found=word, wanted="term^weight") from None
    return weights


def format_weighted(weights: Mapping[str, float]) -> str:
    """Format terms as `term^weight`, in descending order of weight, then in order of term."""
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return " ".join(f"{term}^{weight:.6g}" for term, weight in ordered)
