"""How does the text of a query become weighted terms?"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from birchbark.errors import InputError
from birchbark.record_values import weighted_terms
from birchbark.text.analyzer import Analyzer

_WEIGHTED_TERM = re.compile(r"(\S+)\^([0-9.eE+-]+)")


def query_terms(analyzer: Analyzer, text: str) -> dict[str, float]:
    """Analyze `text`; return term → number of occurrences."""
    return {term: float(count) for term, count in Counter(analyzer.terms(text)).items()}


def parse_weighted(text: str) -> dict[str, float]:
    """Parse index terms with weights: `term^weight`, separated by white space.

    The terms are used as written, without analysis; weights of a repeated term are added up. Raises
    InputError for a word of another form, and a weight out of range.
    """
    weights: defaultdict[str, float] = defaultdict(float)
    for word in text.split():
        match = _WEIGHTED_TERM.fullmatch(word)
        try:
            weights[match[1] if match else ""] += float(match[2] if match else "")
        except ValueError:
            raise InputError("not a weighted term", found=word, wanted="term^weight") from None
    return weighted_terms(weights, "the query")


def format_weighted(weights: Mapping[str, float]) -> str:
    """Format terms as `term^weight`, in descending order of weight, then in order of term."""
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return " ".join(f"{term}^{weight:.6g}" for term, weight in ordered)
