"""How are candidates found in the parts of an index ranked as one list?"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.reader import FieldPart, Index
from birchbark.index.statistics import Statistics, field_statistics, full_statistics
from birchbark.records import Ranking
from birchbark.retrieve.match import Selection

DEPTH = 1000


class Model(Protocol):
    """Scores the documents of a part for weighted terms: BM25, TfIdf.

    all_terms: whether it needs the statistics of every term, not those of the query alone.
    """

    all_terms: ClassVar[bool]

    def add(
        self,
        scores: NDArray[np.float64],
        part: FieldPart,
        weights: Mapping[str, float],
        statistics: Statistics,
    ) -> None:
        """Add each document's score to `scores` (documents of the part,)."""
        ...


def rank(
    index: Index,
    weights: Mapping[str, float],
    fields: Mapping[str, tuple[float, Model]],
    statistics: Mapping[str, Statistics],
    selection: Selection,
    depth: int = DEPTH,
) -> Ranking:
    """The `depth` best candidates by Σ_field weight · model(field).

    weights: term → weight, 0 or more. fields: field → its weight and model. statistics: of each
    field, with the frequencies of all terms. selection: which documents are candidates.
    Everything is added up in an order fixed by names and terms, in float64, so the scores do not
    depend on how the index is divided into parts.
    """
    if bad := [t for t, w in weights.items() if not (w >= 0 and math.isfinite(w))]:
        raise InputError(f"weight of term {bad[0]!r} is out of range", wanted="0 or more")
    if depth < 1:
        raise InputError("depth is out of range", wanted="1 or more", found=str(depth))
    numbers = {name: index.field_number(name) for name in fields}
    doc_ids: list[str] = []
    scores: list[NDArray[Any]] = [np.zeros(0)]
    for part in index.parts:
        total = np.zeros(part.documents)
        for name, (share, model) in fields.items():
            of_field = total if len(fields) == 1 and share == 1 else np.zeros(part.documents)
            model.add(of_field, part.fields[numbers[name]], weights, statistics[name])
            if of_field is not total:
                total += share * of_field
        hits = selection.candidates(index, part, fields)
        best = hits[_best(total[hits].astype(np.float32), depth)]
        doc_ids += part.doc_ids.take(best.tolist())
        scores.append(total[best])
    return Ranking.of(doc_ids, np.concatenate(scores), depth)


def gather(
    index: Index, models: Mapping[str, Model], terms: Collection[str]
) -> dict[str, Statistics]:
    """The statistics that `rank` needs, from `index` alone: for each field in `models`."""
    return {
        field: full_statistics(index, field)
        if model.all_terms
        else field_statistics(index, field, terms)
        for field, model in models.items()
    }


def _best(scores: NDArray[np.float32], depth: int) -> NDArray[np.int64]:
    """Positions of all scores that reach the depth-th best one: ties at the cut stay in."""
    if len(scores) <= depth:
        return np.arange(len(scores))
    least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    return np.flatnonzero(scores >= least)
