"""How are documents indexed whose terms come with weights, as SPLADE computes them?

A weighted field holds a JSON object, term → weight. Weights are multiplied by the field's number of
steps and rounded, so that they are stored like frequencies (a quantised impact). Terms are used as
they are, without an analyzer.
"""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

MAX_IMPACT = (1 << 20) - 2  # below MAX_TF in compress_postings.py
Impacts = dict[str, int]


def parse_impacts(text: str, steps: int, where: str) -> Impacts:
    """Return term → impact, 1 or more, of a field's text; a weight below ½ step leaves a term out.

    steps: steps per 1 of weight. where: the document and field, for errors. Raises InputError
    unless `text` is a JSON object of weights of 0 or more, at most MAX_IMPACT steps each. An empty
    text has no terms.
    """
    if not text.strip():
        return {}
    try:
        weights = json.loads(text)
    except (ValueError, RecursionError):
        weights = None
    if not isinstance(weights, dict):
        raise InputError(
            "terms have no weights",
            where=where,
            wanted='a JSON object such as {"bee": 1.5}',
            found=text[:60],
        )
    impacts = {}
    for term, weight in weights.items():
        is_number = type(weight) in (int, float) and weight >= 0  # not NaN
        is_text = term.isascii() or term == term.encode(errors="replace").decode()
        if not is_number or not term or not is_text or weight * steps > MAX_IMPACT:
            raise InputError(
                f"invalid weight of term {term[:60]!r}",
                where=where,
                wanted=f"a term, and a number from 0 to {MAX_IMPACT // steps}",
                found=repr(weight)[:60],
            )
        if impact := round(weight * steps):
            impacts[term] = impact
    return impacts


class WeightedFieldBuilder:
    """Collects the impacts of one weighted field, document by document."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._terms, self._impacts = array("I"), array("I")
        self._counts = array("q")  # terms per document

    @property
    def max_tokens(self) -> int:
        """The number of postings."""
        return len(self._terms)

    def analyze(self) -> int:
        """Return the number of postings."""
        return len(self._terms)

    def add(self, impacts: Impacts) -> None:
        """Add the impacts of the next document."""
        self._terms.extend(map(self._numbers.__getitem__, impacts))
        self._impacts.extend(impacts.values())
        self._counts.append(len(impacts))

    def invert(self) -> tuple[list[str], Any, Any, Any, NDArray[np.uint32]]:
        """Return the sorted terms; starts, docs, tfs (see inversion.py); and lengths (documents,).

        A document's length is the sum of its impacts.
        """
        counts = np.asarray(self._counts)
        terms, impacts = np.asarray(self._terms), np.asarray(self._impacts, np.uint32)
        docs = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
        names = sorted(self._numbers)
        rank = np.empty(len(names), np.int64)  # term number → its place among the sorted terms
        rank[[self._numbers[name] for name in names]] = np.arange(len(names))
        places = rank[terms]  # (postings,)
        order = np.argsort(places, kind="stable")  # by term; documents stay in order
        sizes = np.bincount(places, minlength=len(names))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        lengths = np.bincount(docs, impacts, len(counts)).astype(np.uint32)
        return names, starts, docs[order], impacts[order], lengths
