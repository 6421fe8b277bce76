"""What must a search engine do to serve as a first stage?

It implements the two methods of `Engine`. tests/retrieve/engine_contract.py tests their contract
for any engine. `IndexEngine`, on Birchbark's own index, and `TantivyEngine` (adapters/tantivy.py)
fulfil it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from birchbark.arguments import check_instance
from birchbark.index.index import Index
from birchbark.index.statistics import field_statistics
from birchbark.records import Document, Ranking
from birchbark.retrieve.bm25 import bm25_idf
from birchbark.retrieve.first_stage import FirstStage, rank_query, run_tag
from birchbark.retrieve.match import Match
from birchbark.retrieve.rank_terms import RankTerms, rank
from birchbark.text.analyzer import Analyzer


class DocumentStore(Protocol):
    """A store that returns documents by id, such as an `Index`."""

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """Return the documents with these ids, in this order, as they were indexed.

        Raises InputError for an unknown id.
        """
        ...


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """A store of documents that are in memory."""

    by_id: Mapping[str, Document]

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """See `DocumentStore.documents`; KeyError for an unknown id."""
        return [self.by_id[doc_id] for doc_id in doc_ids]


class Engine(DocumentStore, Protocol):
    """A first stage, which returns the candidates for a query, and their documents."""

    def rank(self, query: str, depth: int) -> Ranking:
        """Return the `depth` best documents for `query`; ties follow the tie rule (records.py).

        The query is plain text, without syntax. The ranking is empty if the query
        matches no document. The same query and depth always give the same ranking. A shallower
        ranking is usually a prefix of a deeper one, but an engine may choose what is re-ranked, the
        first `depth` documents, by more than their scores. Raises InputError for a depth below 1.
        """
        ...


@runtime_checkable
class TermWeighting(Protocol):
    """An engine that tells how rare a term is; an engine without it can still be used."""

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer of documents and queries."""
        ...

    def idf(self, terms: Collection[str]) -> dict[str, float]:
        """Return term → inverse document frequency, above 0."""
        ...


def term_weighting(store: DocumentStore) -> TermWeighting | None:
    """Return the term weighting of a store, or None if it has none."""
    if isinstance(store, Index):
        return IndexEngine(store)
    return store if isinstance(store, TermWeighting) else None


@dataclass(frozen=True, slots=True)
class IndexEngine:
    """The first stage on Birchbark's own index.

    Attributes:
        index: The index to search.
        stage: The settings of the first stage. Default `FirstStage()`: BM25 on `contents`.
        rank_terms: Ranks the documents of the index by their terms. Default: `rank`, in this
            process.
    """

    index: Index
    stage: FirstStage = field(default_factory=FirstStage)
    rank_terms: RankTerms = rank

    def __post_init__(self) -> None:
        check_instance(self.index, Index, "the index")
        check_instance(self.stage, FirstStage, "the first stage")

    @property
    def name(self) -> str:
        """The tag of its runs."""
        return run_tag(self.index, self.stage)

    def filtered(self, filters: Mapping[str, str]) -> Self:
        """Return this engine with additional filters; see `FirstStage.filtered`.

        Args:
            filters: Keyword field → filter.
        """
        return replace(self, stage=self.stage.filtered(filters))

    def allowing(
        self, allowed: Mapping[str, NDArray[np.bool_]], match: Match | None = None
    ) -> Self:
        """Return an engine whose candidates are among these documents; see `FirstStage`.

        Args:
            allowed: Name of a part of the index → which of its documents may be candidates.
            match: Replaces the match of the first stage. Default None: its own.
        """
        return replace(self, stage=self.stage.allowing(allowed, match))

    def ranking_by(self, rank_terms: RankTerms) -> Self:
        """Return this engine with another `rank_terms`."""
        return replace(self, rank_terms=rank_terms)

    def rank(self, query: str, depth: int) -> Ranking:
        """Return the `depth` best documents for a query.

        Args:
            query: Plain text, without syntax.
            depth: The number of documents to return, 1 or more.
        """
        return rank_query(self.index, query, self.stage, depth, rank_terms=self.rank_terms)

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """Return the documents with these ids, in this order, as they were indexed.

        Args:
            doc_ids: The ids; InputError for one that is not in the index.
        """
        return self.index.documents(doc_ids)

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer of the index."""
        return self.index.analyzer

    def idf(self, terms: Collection[str]) -> dict[str, float]:
        """Return term → BM25's idf in the searched field with the highest weight.

        Args:
            terms: Terms of the index's analyzer.
        """
        fields = self.stage.searched(self.index)
        field = max(fields, key=lambda name: fields[name])
        statistics = field_statistics(self.index, field, terms)
        count, frequencies = statistics.totals.documents, statistics.frequencies
        return {term: bm25_idf(count, frequencies.get(term, 0)) for term in terms}
