"""How are the best documents of an index found, over its parts and fields?"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.postings import best
from birchbark.index.reader import Index, Part
from birchbark.index.statistics import Statistics, field_statistics, full_statistics
from birchbark.records import Ranking
from birchbark.retrieve.match import OR, Selection
from birchbark.retrieve.scoring import Model, Scoring

DEPTH = 1000
HEAVIEST = 1e30
ANY = -1  # `best`: a document needs one list, and each list raises its score
_norms: WeakKeyDictionary[Part, tuple[object, NDArray[np.float64]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class _Field:
    """A searched field: its number in the index, its weight, and how it is scored."""

    number: int
    share: float
    scoring: Scoring


def rank(
    index: Index,
    weights: Mapping[str, float],
    fields: Mapping[str, tuple[float, Model]],
    statistics: Mapping[str, Statistics],
    selection: Selection,
    depth: int = DEPTH,
) -> Ranking:
    """The `depth` best candidates by Σ_field weight · model(field), exactly.

    weights: term → weight, 0 or more. fields: field → its weight and model. statistics: of each
    field, with the frequencies of all terms. selection: which documents are candidates.
    Addends are rounded to a grid on which sums are exact, 2^−51 of the largest sum there could be.
    So scores depend neither on the order of adding nor on how the index is divided.
    """
    if bad := [t for t, w in weights.items() if not 0 <= w <= HEAVIEST]:
        raise InputError(f"weight of term {bad[0]!r} is out of range", wanted=f"0 to {HEAVIEST:g}")
    if depth < 1:
        raise InputError("depth is out of range", wanted="1 or more", found=str(depth))
    searched = [
        _Field(index.field_number(name), share, model.scoring(weights, statistics[name]))
        for name, (share, model) in fields.items()
    ]
    grid = _grid(searched)
    found, reached = [], -math.inf
    for part in index.parts:
        lists, minimum = _lists(part, searched, selection, grid)
        norms, excluded = (
            _norm_rows(index, part, fields, statistics),
            selection.excluded(index, part),
        )
        docs, sums, _, reached = best(lists, norms, excluded, depth, reached, grid, minimum)
        found.append((part, docs, sums.astype(np.float32)))
    least = _least([scores for *_, scores in found], depth)
    doc_ids = [
        doc_id
        for part, docs, scores in found
        for doc_id in part.doc_ids.take(docs[scores >= least])
    ]
    kept = [scores[scores >= least] for *_, scores in found]
    return Ranking.of(doc_ids, np.concatenate([*kept, np.zeros(0)]), depth)


def _least(scores: Sequence[NDArray[np.float32]], depth: int) -> float:
    """The depth-th best of all scores, or below any if they are fewer."""
    together = np.concatenate([*scores, np.zeros(0, np.float32)])
    if len(together) <= depth:
        return -math.inf
    return float(np.partition(together, len(together) - depth)[len(together) - depth])


def count(index: Index, fields: Collection[str], selection: Selection) -> int:
    """The number of candidates when `fields` are searched."""
    nothing = Scoring({}, {}, 0.0, 1.0, 0.0)
    searched = [_Field(index.field_number(name), 0.0, nothing) for name in fields]
    found = 0
    for part in index.parts:
        lists, minimum = _lists(part, searched, selection, 0.0)
        norms, excluded = np.ones((len(searched), part.documents)), selection.excluded(index, part)
        found += best(lists, norms, excluded, 1, math.inf, 0.0, max(minimum, selection.least))[2]
    return found


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


def _grid(fields: Sequence[_Field]) -> float:
    """A number so large that adding and subtracting it rounds to 2^−51 of all limits together."""
    total = math.fsum(
        field.share * most for field in fields for most in field.scoring.limits.values()
    )
    return math.ldexp(1.5, math.frexp(total)[1] + 1) if total else 0.0


def _lists(
    part: Part, fields: Sequence[_Field], selection: Selection, grid: float
) -> tuple[Any, int]:
    """The posting lists of a query in one part, and the least number of groups: see `best`."""
    groups = {term: group for group, term in enumerate(sorted(selection.terms))}
    weighted = (term for field in fields for term, w in field.scoring.weights.items() if w)
    terms = sorted(groups.keys() | set(weighted))
    found = np.stack([part.fields[field.number].find(terms) for field in fields], axis=1)
    numbers, rows, of_group, factors = [], [], [], []
    for term, places in zip(terms, found.tolist(), strict=True):
        for row, (field, place) in enumerate(zip(fields, places, strict=True)):
            if place >= 0:
                scoring = field.scoring
                weight = field.share * scoring.weights.get(term, 0.0)
                limit = field.share * scoring.limits.get(term, 0.0)
                least = math.ulp(grid) if weight else 0.0
                numbers.append(place)
                rows.append(row)
                of_group.append(groups.get(term, -1))
                shape = (scoring.saturation, scoring.floor, scoring.slope)
                factors.append((weight, *shape, limit, least))
    fast = selection.match == OR and all(weight for weight, *_ in factors) and -1 not in of_group
    if fast:
        of_group = [-1] * len(of_group)
    starts = part.postings.starts[np.array(numbers, np.int64)].astype(np.int64)
    table = np.array(factors, np.float64).reshape(-1, 6)
    columns = (starts, np.array(rows, np.int64), np.array(of_group, np.int64), table)
    return (part.postings.words, *columns), ANY if fast else selection.least


def _norm_rows(
    index: Index,
    part: Part,
    fields: Mapping[str, tuple[float, Model]],
    statistics: Mapping[str, Statistics],
) -> NDArray[np.float64]:
    """The norms of each field, (fields, documents); those asked for last are remembered."""
    chosen = [(index.field_number(f), model, statistics[f]) for f, (_, model) in fields.items()]
    key = [(number, m, s if m.all_terms else s.totals) for number, m, s in chosen]
    known = _norms.get(part)
    if known is None or known[0] != key:
        rows = [model.norms(part.fields[number], of) for number, model, of in chosen]
        known = _norms[part] = (key, np.stack(rows) if len(rows) > 1 else rows[0][None])
    return known[1]
