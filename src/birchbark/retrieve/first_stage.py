"""How does a query become the first-stage ranking that BERT re-ranks?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.layout import CONTENTS
from birchbark.index.reader import Index
from birchbark.records import Query, Ranking, Run
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.match import ALL, OR, Match, Selection
from birchbark.retrieve.model import Model
from birchbark.retrieve.query import query_terms
from birchbark.retrieve.rank import DEPTH, HEAVIEST, candidates, gather, rank
from birchbark.retrieve.rm3 import RM3, expand


@dataclass(frozen=True, slots=True)
class FirstStage:
    """All choices of the first stage in one value.

    model: BM25 or TfIdf. fields: indexed field → weight; a document's score is Σ weight · score of
    the field, each with lengths and frequencies of its own. field_models: models of single fields,
    where they differ. match: which documents are candidates, by the terms of the original query.
    filters: field → value that a candidate must have; statistics stay those of all documents.
    expansion: RM3 over a first ranking, read from the first field; none by default.
    """

    model: Model = dataclasses.field(default_factory=BM25)
    fields: Mapping[str, float] = dataclasses.field(default_factory=lambda: {CONTENTS: 1.0})
    field_models: Mapping[str, Model] = dataclasses.field(default_factory=dict)
    match: Match = OR
    filters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    expansion: RM3 | None = None

    def __post_init__(self) -> None:
        if not self.fields:
            raise InputError("search needs at least one field")
        if bad := [w for w in self.fields.values() if not 0 <= w <= HEAVIEST]:
            wanted = f"0 to {HEAVIEST:g}"
            raise InputError("weight of a field is out of range", wanted=wanted, found=str(bad[0]))

    def filtered(self, filters: Mapping[str, str]) -> FirstStage:
        """The same, with these filters besides; InputError for another value of a field."""
        for name in self.filters.keys() & filters.keys():
            if self.filters[name] != filters[name]:
                raise InputError(f"documents are filtered by another {name} already")
        return dataclasses.replace(self, filters={**self.filters, **filters})

    @property
    def name(self) -> str:
        """What runs of this first stage are called."""
        model = type(self.model).__name__.lower()
        return f"{model}+rm3" if self.expansion else model


@dataclass(frozen=True, slots=True)
class Nearby:
    """Candidates that were found otherwise than by their terms.

    documents: of each part of the index, which (documents,). terms: whether those that the stage's
    match finds are candidates, too.
    """

    documents: Sequence[NDArray[np.bool_]]
    terms: bool


def expanded_query(
    index: Index, weights: Mapping[str, float], stage: FirstStage = FirstStage()
) -> dict[str, float]:
    """The weighted query that is ranked in the end: `weights`, after RM3 if the stage has it."""
    if not stage.expansion:
        return dict(weights)
    feedback = rank_expanded(index, weights, weights, stage, stage.expansion.documents)
    return expand(index, weights, feedback, stage.expansion, next(iter(stage.fields)))


def rank_query(
    index: Index,
    query: str | Mapping[str, float],
    stage: FirstStage = FirstStage(),
    depth: int = DEPTH,
    nearby: Nearby | None = None,
) -> Ranking:
    """The `depth` best documents; none if the query has no terms or nothing matches.

    query: a text, or index terms with weights of 0 or more. nearby: further candidates, whose score
    is 0 where they hold no term.
    """
    weights = _weights(index, query)
    expanded = expanded_query(index, weights, stage)
    return rank_expanded(index, expanded, weights, stage, depth, nearby)


def rank_queries(
    index: Index,
    queries: Iterable[Query],
    stage: FirstStage = FirstStage(),
    *,
    depth: int = DEPTH,
    tag: str | None = None,
    advance: Callable[[int], object] = lambda done: None,
) -> Run:
    """A run of the `depth` best documents for each of `queries`, in their order.

    advance: called with 1 after each query. A query without candidates has an empty ranking.
    """
    rankings = {}
    for query in queries:
        rankings[query.query_id] = rank_query(index, query.text, stage, depth)
        advance(1)
    return Run(rankings, tag or stage.name)


def match_ratio(
    index: Index, query: str | Mapping[str, float], stage: FirstStage = FirstStage()
) -> float:
    """Share of all documents that are candidates for the original query, 0 to 1."""
    matched = matching(index, query, stage)
    return sum(int(part.sum()) for part in matched) / max(1, len(index))


def matching(
    index: Index, query: str | Mapping[str, float], stage: FirstStage = FirstStage()
) -> list[NDArray[np.bool_]]:
    """Of each part of the index, which documents are candidates for the original query."""
    terms = [term for term, weight in _weights(index, query).items() if weight]
    return candidates(index, stage.fields, Selection(stage.match, terms, stage.filters))


def _weights(index: Index, query: str | Mapping[str, float]) -> Mapping[str, float]:
    return query_terms(index.analyzer, query) if isinstance(query, str) else query


def rank_expanded(
    index: Index,
    weights: Mapping[str, float],
    original: Mapping[str, float],
    stage: FirstStage = FirstStage(),
    depth: int = DEPTH,
    nearby: Nearby | None = None,
) -> Ranking:
    """The `depth` best documents for a query that is expanded already: no expansion follows.

    weights: what is scored. original: the terms before expansion, of which candidates must hold
    some; with OR any term of `weights` makes a candidate.
    """
    models = {f: (w, stage.field_models.get(f, stage.model)) for f, w in stage.fields.items()}
    matched = weights if stage.match == OR else original
    terms = [term for term in matched if matched[term]]
    statistics = gather(index, {name: model for name, (_, model) in models.items()}, list(weights))
    selections = [Selection(stage.match, terms, stage.filters)]
    if nearby:
        only = {p.name: d for p, d in zip(index.parts, nearby.documents, strict=True)}
        further = Selection(ALL, terms, stage.filters, only)
        selections = [*selections, further] if nearby.terms else [further]
    found = [rank(index, weights, models, statistics, one, depth) for one in selections]
    return found[0] if len(found) == 1 else _together(found, depth)


def _together(rankings: Sequence[Ranking], depth: int) -> Ranking:
    """The best of several rankings by the same scores."""
    scores = dict(pair for ranking in rankings for pair in ranking)
    return Ranking.of(list(scores), list(scores.values()), depth)
