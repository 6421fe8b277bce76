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
from birchbark.index.part_reader import Part
from birchbark.index.postings import best
from birchbark.index.reader import Index
from birchbark.index.statistics import Statistics, field_statistics, full_statistics
from birchbark.records import Ranking
from birchbark.retrieve.match import OR, Selection
from birchbark.retrieve.model import Model, Scoring

DEPTH = 1000
HEAVIEST = 1e30
ANY = -1  # `best`: a document needs one list, and each list raises its score
_norms: WeakKeyDictionary[Part, tuple[object, NDArray[np.float64]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query as rows, one for each term and searched field: what `best` must know of its list.

    terms: sorted. fields: numbers in the index of those that are searched. rows, groups, factors:
    see `best`; the row of term t in field f is t · fields + f.
    """

    terms: tuple[str, ...]
    fields: tuple[int, ...]
    rows: NDArray[np.int64]
    groups: NDArray[np.int64]
    factors: NDArray[np.float64]
    minimum: int
    grid: float

    def lists(self, part: Part) -> Any:
        """The posting lists there are in one part, as `best` takes them."""
        found = np.stack([part.fields[f].find(self.terms) for f in self.fields], axis=1).ravel()
        there = found >= 0
        starts = part.postings.places(found[there])
        columns = (self.rows[there], self.groups[there], self.factors[there])
        return (part.postings.words, starts, *columns)


def _asked(scored: Mapping[int, tuple[float, Scoring]], selection: Selection) -> _Asked:
    """scored: number of a field → its weight, and how the query is scored in it."""
    limits = (share * x for share, scoring in scored.values() for x in scoring.limits.values())
    grid = _grid(math.fsum(limits))
    groups = {term: group for group, term in enumerate(sorted(selection.terms))}
    weighted = (t for _, scoring in scored.values() for t, w in scoring.weights.items() if w)
    terms = sorted(groups.keys() | set(weighted))
    factors = []
    for term in terms:
        for share, scoring in scored.values():
            weight = share * scoring.weights.get(term, 0.0)
            limit = share * scoring.limits.get(term, 0.0)
            shape = (scoring.saturation, scoring.floor, scoring.slope)
            factors.append((weight, *shape, limit, math.ulp(grid) if weight else 0.0))
    table = np.array(factors).reshape(-1, 6)
    of_terms = np.repeat(np.array([groups.get(t, -1) for t in terms], np.int64), len(scored))
    any_will_do = selection.match == OR and bool((table[:, 0] > 0).all() and (of_terms >= 0).all())
    return _Asked(
        tuple(terms),
        tuple(scored),
        np.tile(np.arange(len(scored)), len(terms)),
        np.full_like(of_terms, -1) if any_will_do else of_terms,
        table,
        ANY if any_will_do else selection.least,
        grid,
    )


def _grid(total: float) -> float:
    """A number so large that adding and subtracting it rounds to 2^−51 of `total`."""
    return math.ldexp(1.5, math.frexp(total)[1] + 1) if total else 0.0


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
    asked = _asked(
        {
            index.field_number(name): (share, model.scoring(weights, statistics[name]))
            for name, (share, model) in fields.items()
        },
        selection,
    )
    found, reached = [], -math.inf
    for part in index.parts:
        with part.reading():
            norms = _norm_rows(index, part, fields, statistics)
            excluded, lists = selection.excluded(index, part), asked.lists(part)
            docs, sums, _, reached = best(
                lists, norms, excluded, depth, reached, asked.grid, asked.minimum
            )
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


def candidates(
    index: Index, fields: Collection[str], selection: Selection
) -> list[NDArray[np.bool_]]:
    """Of each part, which documents are candidates, (documents,), when `fields` are searched."""
    nothing = Scoring(dict.fromkeys(selection.terms, 0.0), {}, 0.0, 1.0, 0.0)
    asked = _asked({index.field_number(name): (0.0, nothing) for name in fields}, selection)
    found = []
    for part in index.parts:
        with part.reading():
            excluded, lists = selection.excluded(index, part), asked.lists(part)
            norms, depth = np.ones((len(fields), part.documents)), max(1, part.documents)
            docs = best(lists, norms, excluded, depth, -math.inf, asked.grid, selection.least)[0]
        chosen = np.zeros(part.documents, bool)
        chosen[docs] = True
        found.append(chosen)
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
