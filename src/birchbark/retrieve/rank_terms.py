"""How are the best documents for weighted terms found, over all parts and fields of an index?"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.errors import require_at_least
from birchbark.index.index import Index
from birchbark.index.part import Part
from birchbark.index.postings import best_documents
from birchbark.index.statistics import Statistics, field_statistics, full_statistics
from birchbark.records import Ranking
from birchbark.retrieve.match import OR, Selection
from birchbark.retrieve.weighting_model import Scoring, WeightingModel

ANY = -1  # the `minimum` of `best_documents` with which lists can be skipped
_norms: WeakKeyDictionary[Part, tuple[object, NDArray[np.float64]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class _TermRows:
    """A query as rows, one per term and searched field, in the form that `best_documents` takes.

    The row of term i in field j is i · f + j.

    terms: (t,), sorted. fields: (f,), the searched fields' numbers in the index. rows: int64
    (t · f,), the row of `norms` that each one uses. groups: int64 (t · f,), the number of the query
    term, or −1. factors: float64 (t · f, 6). minimum, grid: see `best_documents`.
    """

    terms: tuple[str, ...]
    fields: tuple[int, ...]
    rows: NDArray[np.int64]
    groups: NDArray[np.int64]
    factors: NDArray[np.float64]
    minimum: int
    grid: float

    def lists(self, part: Part) -> Any:
        """Return the posting lists in one part: the argument `query` of `best_documents`."""
        numbers = np.stack([part.fields[f].find(self.terms) for f in self.fields], axis=1).ravel()
        occurs = numbers >= 0
        offsets = part.postings.offsets(numbers[occurs])
        columns = (self.rows[occurs], self.groups[occurs], self.factors[occurs])
        return (part.postings.words, offsets, *columns)


def _term_rows(scored: Mapping[int, tuple[float, Scoring]], selection: Selection) -> _TermRows:
    """Lay out a query as rows.

    scored: field number → the field's weight, and how the query scores documents in the field.
    """
    limits = (
        weight * limit for weight, scoring in scored.values() for limit in scoring.limits.values()
    )
    grid = _grid(math.fsum(limits))
    groups = {term: group for group, term in enumerate(sorted(selection.terms))}
    weighted = (t for _, scoring in scored.values() for t, w in scoring.weights.items() if w)
    terms = sorted(groups.keys() | set(weighted))
    factors = []
    for term in terms:
        for field_weight, scoring in scored.values():
            weight = field_weight * scoring.weights.get(term, 0.0)
            limit = field_weight * scoring.limits.get(term, 0.0)
            shape = (scoring.saturation, scoring.floor, scoring.slope)
            factors.append((weight, *shape, limit, math.ulp(grid) if weight else 0.0))
    table = np.array(factors).reshape(-1, 6)
    of_rows = np.repeat(np.array([groups.get(t, -1) for t in terms], np.int64), len(scored))
    skippable = selection.match == OR and bool((table[:, 0] > 0).all() and (of_rows >= 0).all())
    return _TermRows(
        tuple(terms),
        tuple(scored),
        np.tile(np.arange(len(scored)), len(terms)),
        np.full_like(of_rows, -1) if skippable else of_rows,
        table,
        ANY if skippable else selection.min_terms,
        grid,
    )


def _grid(total: float) -> float:
    """Return a number so large that adding and then subtracting it rounds to 2^−51 of `total`."""
    return math.ldexp(1.5, math.frexp(total)[1] + 1) if total else 0.0


class RankTerms(Protocol):
    """Ranks documents by their terms as `rank` does, here or elsewhere."""

    def __call__(
        self,
        index: Index,
        weights: Mapping[str, float],
        fields: Mapping[str, tuple[float, WeightingModel]],
        statistics: Mapping[str, Statistics],
        selection: Selection,
        depth: int,
        /,
    ) -> Ranking:
        """See `rank`."""
        ...


def rank(
    index: Index,
    weights: Mapping[str, float],
    fields: Mapping[str, tuple[float, WeightingModel]],
    statistics: Mapping[str, Statistics],
    selection: Selection,
    depth: int = defaults.RETRIEVAL_DEPTH,
) -> Ranking:
    """Return the `depth` best candidates by the weighted sum of their scores in each field.

    weights: term → weight, 0 or more. fields: field → its weight and weighting model. statistics:
    field → its statistics, with the document frequencies that the model needs. selection: which
    documents are candidates.

    The result is exact. Addends are rounded to a grid on which sums are exact, 2^−51 of the largest
    possible sum, so scores depend neither on the order of addition nor on how the index is divided
    into parts.
    """
    require_at_least("depth", depth, 1)
    scored = {
        index.field_number(name): (field_weight, model.scoring(weights, statistics[name]))
        for name, (field_weight, model) in fields.items()
    }
    query = _term_rows(scored, selection)
    hits, threshold = [], -math.inf
    for part in index.parts:
        with part.reporting_damage():
            norms = _norm_rows(index, part, fields, statistics)
            excluded, lists = selection.excluded(index, part), query.lists(part)
            docs, sums, threshold = best_documents(
                lists, norms, excluded, depth, threshold, query.grid, query.minimum
            )
        hits.append((part, docs, sums.astype(np.float32)))
    last = _last_score([scores for *_, scores in hits], depth)
    doc_ids = [
        doc_id for part, docs, scores in hits for doc_id in part.doc_ids.take(docs[scores >= last])
    ]
    best_scores = [scores[scores >= last] for *_, scores in hits]
    return Ranking.of(doc_ids, np.concatenate([*best_scores, np.zeros(0)]), depth)


def _last_score(scores: Sequence[NDArray[np.float32]], depth: int) -> float:
    """Return the depth-th best of all scores; −inf if there are no more than `depth`."""
    merged = np.concatenate([*scores, np.zeros(0, np.float32)])
    if len(merged) <= depth:
        return -math.inf
    return float(np.partition(merged, len(merged) - depth)[len(merged) - depth])


def candidates(
    index: Index, fields: Collection[str], selection: Selection
) -> list[NDArray[np.bool_]]:
    """Return for each part which documents are candidates in a search of `fields`, (documents,)."""
    unscored = Scoring(dict.fromkeys(selection.terms, 0.0), {}, 0.0, 1.0, 0.0)
    query = _term_rows({index.field_number(name): (0.0, unscored) for name in fields}, selection)
    masks = []
    for part in index.parts:
        with part.reporting_damage():
            excluded, lists = selection.excluded(index, part), query.lists(part)
            norms, depth = np.ones((len(fields), part.documents)), max(1, part.documents)
            docs = best_documents(
                lists, norms, excluded, depth, -math.inf, query.grid, selection.min_terms
            )[0]
        mask = np.zeros(part.documents, bool)
        mask[docs] = True
        masks.append(mask)
    return masks


def collect_statistics(
    index: Index, models: Mapping[str, WeightingModel], terms: Collection[str]
) -> dict[str, Statistics]:
    """Return the statistics that `rank` needs for each field in `models`, computed from `index`."""
    return {
        field: full_statistics(index, field)
        if model.all_terms
        else field_statistics(index, field, terms)
        for field, model in models.items()
    }


def _norm_rows(
    index: Index,
    part: Part,
    fields: Mapping[str, tuple[float, WeightingModel]],
    statistics: Mapping[str, Statistics],
) -> NDArray[np.float64]:
    """Return the norms in each field, (fields, documents); the latest result per part is cached."""
    columns = [(index.field_number(f), model, statistics[f]) for f, (_, model) in fields.items()]
    key = [(number, m, s if m.all_terms else s.totals) for number, m, s in columns]
    cached = _norms.get(part)
    if cached is None or cached[0] != key:
        rows = [model.norms(part.fields[number], stats) for number, model, stats in columns]
        cached = _norms[part] = (key, np.stack(rows) if len(rows) > 1 else rows[0][None])
    return cached[1]
