"""What is a measure's value, given only the ranks of the relevant documents?

For tuning, where thousands of rankings are measured of which none is kept. The values are those of
trec_eval, to the last bits (a test holds this against `measure`).
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

Float64s = NDArray[np.float64]

_NAME = re.compile(r"(AP|nDCG|P|R|RR)(?:@([1-9]\d{0,8}))?")
UNRANKED = np.inf


def parse_rank_measure(name: str) -> tuple[str, float]:
    """The measure that can be had from ranks, and its cutoff; InputError for any other."""
    found = _NAME.fullmatch(name)
    if not found or (found[1] in ("P", "R") and not found[2]):
        raise InputError(
            f"measure {name!r} cannot be tuned for",
            remedy="AP, nDCG, P@k, R@k or RR, with @k or not",
        )
    return found[1], float(found[2] or np.inf)


def measure_ranks(name: str, ranks: Float64s, grades: NDArray[np.int64]) -> Float64s:
    """Values (settings,) of one query.

    ranks: (settings, relevant), from 1; UNRANKED where a document is not in the ranking. grades:
    (relevant,), above 0, of *all* relevant documents of the query. Without any, the value is 0.
    """
    kind, cutoff = parse_rank_measure(name)
    if not len(grades):
        return np.zeros(len(ranks))
    hits = np.where(ranks <= cutoff, ranks, UNRANKED)
    if kind == "nDCG":
        best = -np.sort(-grades)[: int(min(cutoff, len(grades)))]
        ideal = float((best / np.log2(np.arange(len(best)) + 2)).sum())
        gains: Float64s = (grades / np.log2(hits + 1)).sum(axis=1)
        return gains / ideal
    if kind == "RR":
        return np.asarray(1 / hits.min(axis=1))
    if kind == "AP":
        ordered = np.sort(hits, axis=1)
        precisions = np.arange(1, len(grades) + 1) / ordered  # 0 where unranked
        return np.asarray(precisions.mean(axis=1))
    found = (hits < UNRANKED).sum(axis=1)
    return np.asarray(found / (cutoff if kind == "P" else len(grades)))
