"""How are measures computed from the ranks of the relevant documents alone?

Tuning evaluates thousands of rankings that are never stored. The values equal trec_eval's; a test
compares them with `measure`.
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
    """Split the name of a measure into its kind and its cutoff (infinite without @k).

    Raises InputError for a measure that ranks alone do not determine.
    """
    match = _NAME.fullmatch(name)
    if not match or (match[1] in ("P", "R") and not match[2]):
        raise InputError(
            f"cannot tune for measure {name!r}",
            wanted="AP, nDCG, RR (each with or without @k), P@k or R@k",
        )
    return match[1], float(match[2] or np.inf)


def measure_ranks(name: str, ranks: Float64s, grades: NDArray[np.int64]) -> Float64s:
    """Return the value of a measure for one query under every weighting, (weightings,).

    name: the measure.
    ranks: (weightings, relevant), counted from 1; UNRANKED for a document that is not ranked.
    grades: the grades of *all* relevant documents for the query, (relevant,), all above 0.
    The value is 0 if there is no relevant document. Raises what `parse_rank_measure` raises.
    """
    kind, cutoff = parse_rank_measure(name)
    if not len(grades):
        return np.zeros(len(ranks))
    hits = np.where(ranks <= cutoff, ranks, UNRANKED)
    if kind == "nDCG":
        ideal_grades = -np.sort(-grades)[: int(min(cutoff, len(grades)))]
        ideal = float((ideal_grades / np.log2(np.arange(len(ideal_grades)) + 2)).sum())
        gains: Float64s = (grades / np.log2(hits + 1)).sum(axis=1)  # 0 if unranked
        return gains / ideal
    if kind == "RR":
        return np.asarray(1 / hits.min(axis=1))
    if kind == "AP":
        ordered = np.sort(hits, axis=1)
        precisions = np.arange(1, len(grades) + 1) / ordered  # 0 if unranked
        return np.asarray(precisions.mean(axis=1))
    retrieved = (hits < UNRANKED).sum(axis=1)
    return np.asarray(retrieved / (cutoff if kind == "P" else len(grades)))
