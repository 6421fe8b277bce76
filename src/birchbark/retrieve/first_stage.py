"""How does a query become a first-stage ranking?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.arguments import check_instance, iterated, mapping_of, shown, text_of
from birchbark.errors import InputError, require_number
from birchbark.index.index import Index
from birchbark.index.layout import CONTENTS, FILE_NAMES
from birchbark.record_values import MAX_WEIGHT, weighted_terms
from birchbark.records import Query, Ranking, Run
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.impacts import Impacts
from birchbark.retrieve.match import ALL, OR, Match, Selection
from birchbark.retrieve.query_terms import query_terms
from birchbark.retrieve.rank_terms import (
    RankTerms,
    candidates,
    collect_statistics,
    rank,
)
from birchbark.retrieve.rm3 import RM3, expand
from birchbark.retrieve.weighting_model import WeightingModel


@dataclass(frozen=True, slots=True)
class FirstStage:
    """The settings of the first stage.

    A document's score is the weighted sum of its scores in the searched fields. Each field has its
    own lengths and document frequencies.

    Attributes:
        model: The weighting model, `BM25` or `TfIdf`. Default `BM25()`. Fields whose terms have
            weights are scored by the dot product instead.
        fields: Indexed field → weight, 0 or more. Default None: `{"contents": 1.0}`, and the index
            of a folder has file names beside it (`searched`).
        field_models: Field → weighting model, for fields that do not use `model`. Default: empty.
        match: How many terms of the original query a candidate contains. Default `OR`.
        filters: Keyword field → filter that a candidate must meet: a value, `docs/*` for all that
            begin with `docs/`, `pdf|html` for any of several, `2024-03..2024-05` for a range (of
            numbers or of text), `!code` for none. Statistics such as document frequencies are still
            those of all documents. Default: empty.
        expansion: `RM3` settings to expand each query with terms from the first field of the best
            documents; None for no expansion. Default None.
        allowed: Name of a part of the index → which of its documents may be candidates, bool
            (documents,); see `retrieve/allowed_documents.py`. Default None: all of them.
        added_filters: Keyword field and filter, as often as a field is filtered, that a candidate
            must meet in addition to `filters`; see `filtered`. Default: empty.
    """

    model: WeightingModel = dataclasses.field(default_factory=BM25)
    fields: Mapping[str, float] | None = None
    field_models: Mapping[str, WeightingModel] = dataclasses.field(default_factory=dict)
    match: Match = OR
    filters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    expansion: RM3 | None = None
    allowed: Mapping[str, NDArray[np.bool_]] | None = dataclasses.field(default=None, compare=False)
    added_filters: Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        fields = {CONTENTS: 1.0, FILE_NAMES: 1.0} if self.fields is None else self.fields
        for name, values in (
            ("fields", fields),
            ("field_models", self.field_models),
            ("filters", self.filters),
        ):
            mapping_of(values, name)
        for name, value in self._all_filters:
            text_of(value, f"the filter of the field {name}")
        if self.expansion is not None:
            check_instance(self.expansion, RM3, "expansion")
        check_instance(self.match, Match, "match")
        if isinstance(self.model, type) or not hasattr(self.model, "scoring"):
            raise InputError(
                "model is not a weighting model",
                wanted="BM25() or TfIdf()",
                found=shown(self.model),
            )
        if not fields:
            raise InputError("the first stage needs at least one field")
        if unknown := self.field_models.keys() - fields.keys():
            raise InputError(
                f"a model for the field {min(unknown)!r}, which is not searched",
                wanted=" or ".join(fields),
            )
        for name, weight in fields.items():
            require_number(f"weight of field {name!r}", weight)
        if bad := [w for w in fields.values() if not 0 <= w <= MAX_WEIGHT]:
            wanted = f"0 to {MAX_WEIGHT:g}"
            raise InputError("field weight is out of range", wanted=wanted, found=str(bad[0]))

    def searched(self, index: Index) -> Mapping[str, float]:
        """Return field → weight, as searched in an index: `fields`, or the default for this index.

        The words of paths (`file_names`) count half of what they would in the text, in addition to
        the text, of which they are a part as well.
        """
        if self.fields is not None:
            return self.fields
        names = {FILE_NAMES: defaults.FILE_NAMES_WEIGHT} if FILE_NAMES in index.fields else {}
        return {CONTENTS: 1.0, **names}

    def filtered(self, filters: Mapping[str, str]) -> FirstStage:
        """Return this stage with additional filters; of a field that has one, both must be met.

        Args:
            filters: Keyword field → filter.
        """
        added = mapping_of(filters, "filters").items()
        return dataclasses.replace(self, added_filters=(*self.added_filters, *added))

    def allowing(
        self, allowed: Mapping[str, NDArray[np.bool_]], match: Match | None = None
    ) -> FirstStage:
        """Return this stage for candidates among these documents; match: None for its own."""
        return dataclasses.replace(self, allowed=allowed, match=match or self.match)

    def selection(self, match: Match, terms: Collection[str]) -> Selection:
        """Return which documents this stage allows, with `match` for `terms`."""
        return Selection(match, terms, self._all_filters, self.allowed)

    @property
    def _all_filters(self) -> Sequence[tuple[str, str]]:
        return (*self.filters.items(), *self.added_filters)

    @property
    def name(self) -> str:
        """The tag of its runs, such as `bm25` or `bm25+rm3`."""
        model = type(self.model).__name__.lower()
        return f"{model}+rm3" if self.expansion else model


@dataclass(frozen=True, slots=True)
class ExtraCandidates:
    """Candidates found by something other than their terms, for example by vectors.

    documents: for each part of the index, whether each document is one of them, bool (documents,).
    with_term_matches: whether the best of the documents that match by their terms take the places
    that these leave.
    """

    documents: Sequence[NDArray[np.bool_]]
    with_term_matches: bool


def expanded_query(
    index: Index,
    weights: Mapping[str, float],
    stage: FirstStage = FirstStage(),
    rank_terms: RankTerms = rank,
) -> dict[str, float]:
    """Return the weighted query after the stage's expansion, if it has one.

    rank_terms: see `rank_query`.
    """
    if not stage.expansion:
        return dict(weights)
    feedback = rank_expanded(
        index, weights, weights, stage, stage.expansion.documents, rank_terms=rank_terms
    )
    return expand(index, weights, feedback, stage.expansion, next(iter(stage.searched(index))))


def rank_query(
    index: Index,
    query: str | Mapping[str, float],
    stage: FirstStage = FirstStage(),
    depth: int = defaults.RETRIEVAL_DEPTH,
    extra: ExtraCandidates | None = None,
    rank_terms: RankTerms = rank,
) -> Ranking:
    """Return the `depth` best documents for one query.

    The ranking is empty if no document matches, or the query has no terms, unless `stage.match` is
    `ALL`.

    Args:
        index: The index to search.
        query: A text, or index terms with weights of 0 or more.
        stage: The settings of the first stage. Default `FirstStage()`: BM25 on `contents`.
        depth: The number of documents to return, 1 or more. Default 1000.
        extra: Candidates found by other means, which are ranked in any case; those that contain
            no query term score 0. Default None.
        rank_terms: Ranks the documents of the index by their terms. Default: `rank`, in this
            process.

    Raises:
        InputError: If a field does not exist, `depth` is out of range, or a term's weight is not a
            number from 0 to 1e30.
        ArtifactError: If the index is damaged.
    """
    check_instance(index, Index, "the index")
    weights = _weights(index, query)
    expanded = expanded_query(index, weights, stage, rank_terms)
    return rank_expanded(index, expanded, weights, stage, depth, extra, rank_terms)


def rank_queries(
    index: Index,
    queries: Iterable[Query],
    stage: FirstStage = FirstStage(),
    *,
    depth: int = defaults.RETRIEVAL_DEPTH,
    tag: str | None = None,
    advance: Callable[[int], object] = lambda done: None,
) -> Run:
    """Return a run with the `depth` best documents for each query.

    A query without candidates has an empty ranking.

    Args:
        index: The index to search.
        queries: The queries; the run has the same order.
        stage: The settings of the first stage. Default `FirstStage()`: BM25 on `contents`.
        depth: The number of documents per query, 1 or more. Default 1000.
        tag: The tag of the run. Default: the name of the stage, such as `bm25`.
        advance: Called with 1 after each query, for example to move a progress bar.

    Raises:
        InputError: If a field does not exist or `depth` is out of range.
        ArtifactError: If the index is damaged.
    """
    rankings = {}
    for query in iterated(queries, "queries"):
        check_instance(query, Query, "an item of the queries")
        if query.query_id in rankings:
            raise InputError(f"a second query with the id {query.query_id}")
        rankings[query.query_id] = rank_query(index, query.weights or query.text, stage, depth)
        advance(1)
    return Run(rankings, tag or run_tag(index, stage))


def run_tag(index: Index, stage: FirstStage) -> str:
    """Return the tag of runs of this stage on this index, whose fields may have stored weights."""
    models = {type(model_of(index, stage, field)) for field in stage.searched(index)}
    return dataclasses.replace(stage, model=Impacts(1)).name if models == {Impacts} else stage.name


def match_ratio(
    index: Index, query: str | Mapping[str, float], stage: FirstStage = FirstStage()
) -> float:
    """Return the share of all documents that are candidates for the original query, 0 to 1.

    See `rank_query` for the arguments.
    """
    return share_in(matching_documents(index, query, stage), index)


def matching_documents(
    index: Index, query: str | Mapping[str, float], stage: FirstStage = FirstStage()
) -> list[NDArray[np.bool_]]:
    """Return for each part which documents are candidates for the original query, (documents,)."""
    terms = [term for term, weight in _weights(index, query).items() if weight]
    return candidates(index, stage.searched(index), stage.selection(stage.match, terms))


def matching_ids(
    index: Index, query: str | Mapping[str, float], stage: FirstStage = FirstStage()
) -> frozenset[str]:
    """Return the ids of all documents that are candidates for the original query."""
    return frozenset(ids_in(matching_documents(index, query, stage), index))


def ids_in(masks: Iterable[NDArray[np.bool_]], index: Index) -> list[str]:
    """Return the ids of the documents in `masks` (documents,), one for each part of the index."""
    return [
        doc_id
        for part, mask in zip(index.parts, masks, strict=True)
        for doc_id in part.doc_ids.take(np.flatnonzero(mask))
    ]


def share_in(masks: Iterable[NDArray[np.bool_]], index: Index) -> float:
    """Return the share of all documents that are in `masks`, 0 to 1."""
    return sum(int(mask.sum()) for mask in masks) / max(1, len(index))


def _weights(index: Index, query: str | Mapping[str, float]) -> Mapping[str, float]:
    if isinstance(query, Mapping):
        return weighted_terms(query, "the query")
    return query_terms(index.analyzer, text_of(query, "the query"))


def model_of(index: Index, stage: FirstStage, field: str) -> WeightingModel:
    """Return the weighting model of one field."""
    if field in index.weighted:
        return Impacts(index.weighted[field])
    return stage.field_models.get(field, stage.model)


def rank_expanded(
    index: Index,
    weights: Mapping[str, float],
    original: Mapping[str, float],
    stage: FirstStage = FirstStage(),
    depth: int = defaults.RETRIEVAL_DEPTH,
    extra: ExtraCandidates | None = None,
    rank_terms: RankTerms = rank,
) -> Ranking:
    """Return the `depth` best documents for a query that is already expanded.

    weights: the terms to score. original: the terms before expansion, which determine the
    candidates; with OR, however, any term of `weights` makes a document a candidate. See
    `rank_query` for the other arguments.
    """
    models = {
        field: (w, model_of(index, stage, field)) for field, w in stage.searched(index).items()
    }
    matched = weights if stage.match == OR else original
    terms = [term for term in matched if matched[term]]
    statistics = collect_statistics(
        index, {name: model for name, (_, model) in models.items()}, list(weights)
    )

    def best(selection: Selection) -> Ranking:
        # of a few allowed documents, sending which they are would take longer than ranking them
        ranks = rank_terms if selection.allowed is None else rank
        return ranks(index, weights, models, statistics, selection, depth)

    by_terms = stage.selection(stage.match, terms)
    if extra is None:
        return best(by_terms)
    allowed = {part.name: mask for part, mask in zip(index.parts, extra.documents, strict=True)}
    scores = dict(best(dataclasses.replace(by_terms, match=ALL, allowed=allowed)))
    if extra.with_term_matches:
        others = (pair for pair in best(by_terms) if pair[0] not in scores)
        scores |= dict(islice(others, depth - len(scores)))
    return Ranking.from_pairs(scores)
