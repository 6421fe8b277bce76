"""How are candidates retrieved by stored vectors, with or without matching terms?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import require_at_least
from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.index import Index
from birchbark.records import Document, Float32s, Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import (
    ExtraCandidates,
    FirstStage,
    matching_documents,
    rank_query,
)
from birchbark.retrieve.match import ALL, Match
from birchbark.retrieve.rank_terms import RankTerms, rank
from birchbark.retrieve.vector_match import CandidateScores, VectorMatch
from birchbark.retrieve.vector_search import StoredVectors, live_masks
from birchbark.text.analyzer import Analyzer


class StoredEmbedding(Protocol):
    """A model that embeds queries, and the vectors that an index stores of it."""

    @property
    def vectors(self) -> Attachment:
        """The attachment that holds the vectors."""
        ...

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model."""
        ...

    def has_tokens(self, query: str) -> bool:
        """Whether the model reads anything of a query."""
        ...

    def cut_tokens(self, query: str) -> int:
        """Return how many tokens of a query the model does not read.

        Raises InputError if the others are too many for the model.
        """
        ...

    def embed(self, query: str) -> Float32s:
        """Return the vector (H,) of a query; InputError if it is too long."""
        ...

    def inner_products(self, rows: Mapping[str, NDArray[Any]], query: Float32s) -> Float32s:
        """Return the inner products (rows,) of stored rows with a query's vector (H,)."""
        ...

    def scores(self, query: str, doc_ids: Sequence[str]) -> Float32s:
        """Return scores (n,) from 0 to 1, in the order of cosines; NaN for one without vectors."""
        ...


class DenseEngine:
    """A first stage over an index with stored vectors of segments.

    A document's cosine is that of its segment nearest to the query. Documents without stored
    vectors cannot be retrieved by cosine. If the index has HNSW graphs, the search for the nearest
    documents is approximate and may miss some. Scores are exact in any case: by cosine, they equal
    those of the same embedding model as a re-ranker, but that scores which it clips to 0 or 1 keep
    the order of their cosines; other scores equal those of `IndexEngine`.

    Args:
        index: The index.
        embedding: Embeds queries, and compares them with the vectors that the index stores.
        match: Which documents are candidates, and how they are scored.
        stage: The first stage whose model, fields, filters and expansion are used. `match.terms`
            takes precedence over its match.
        fuse: Fuses rankings to one of this depth, for `CandidateScores.RRF`.
    """

    def __init__(
        self,
        index: Index,
        embedding: StoredEmbedding,
        match: VectorMatch,
        stage: FirstStage,
        fuse: Callable[[Sequence[Ranking], int], Ranking],
    ) -> None:
        self.index, self.match, self._fuse = index, match, fuse
        self.stage = stage if match.terms is None else replace(stage, match=match.terms)
        self._rank_terms: RankTerms = rank
        self._embedding = embedding
        self._vectors = StoredVectors.of(index, embedding.vectors, embedding.inner_products)

    def rank(self, query: str, depth: int) -> Ranking:
        """See `Engine.rank`.

        With `match.terms`, unless candidates are scored by cosine, the best of a deeper ranking may
        be others.
        """
        require_at_least("depth", depth, 1)
        candidates = self._nearest(query, depth)
        if self.match.scores is CandidateScores.RRF:
            by_terms = rank_query(self.index, query, self.stage, depth, rank_terms=self._rank_terms)
            return self._fuse([by_terms, self._rank_by_cosine(query, candidates, depth)], depth)
        if self.match.scores is CandidateScores.FIRST_STAGE:
            extra = ExtraCandidates(candidates, self.match.terms is not None)
            return rank_query(self.index, query, self.stage, depth, extra, self._rank_terms)
        if self.match.terms is not None:
            allowed = self._with_matching(query, candidates)
            candidates = self._vectors.nearest_documents(
                self._embedding.embed(query), allowed, depth, exactly=True
            )
        return self._rank_by_cosine(query, candidates, depth)

    def _rank_by_cosine(self, query: str, masks: list[NDArray[np.bool_]], depth: int) -> Ranking:
        """Return the `depth` best of the documents in `masks` (documents,), one for each part."""
        doc_ids = [
            doc_id
            for part, mask in zip(self.index.parts, masks, strict=True)
            for doc_id in part.doc_ids.take(np.flatnonzero(mask))
        ]
        scores = self._embedding.scores(query, doc_ids)
        known = np.flatnonzero(~np.isnan(scores))
        return Ranking.of([doc_ids[number] for number in known], scores[known], depth)

    def filtered(self, filters: Mapping[str, str]) -> DenseEngine:
        """Return an engine that also requires these field values."""
        other = copy(self)
        other.stage = self.stage.filtered(filters)
        return other

    def allowing(
        self, allowed: Mapping[str, NDArray[np.bool_]], match: Match | None = None
    ) -> DenseEngine:
        """Return an engine whose candidates are among these documents; see `IndexEngine`."""
        other = copy(self)
        other.stage = self.stage.allowing(allowed, match)
        return other

    def ranking_by(self, rank_terms: RankTerms) -> DenseEngine:
        """Return an engine that ranks by terms with `rank_terms`; see `IndexEngine`."""
        other = copy(self)
        other._rank_terms = rank_terms
        return other

    @property
    def name(self) -> str:
        """The tag of its runs: `dense`, `NAME+dense-rrf` or `NAME+nearest`, NAME of the stage."""
        if self.match.scores is CandidateScores.COSINE:
            return "dense"
        fused = self.match.scores is CandidateScores.RRF
        return f"{self.stage.name}+{'dense-rrf' if fused else 'nearest'}"

    @property
    def vectors_without_graph(self) -> int:
        """Number of vectors that are in no graph; a search compares the query with all of them."""
        return self._vectors.without_graph

    def match_ratio(self, query: str, depth: int) -> float:
        """Return the share of all documents that are candidates for the query, 0 to 1."""
        candidates = self._nearest(query, depth)
        if self.match.terms is not None:
            candidates = self._with_matching(query, candidates)
        return sum(int(mask.sum()) for mask in candidates) / max(1, len(self.index))

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """See `DocumentStore.documents`."""
        return self.index.documents(doc_ids)

    @property
    def analyzer(self) -> Analyzer:
        """See `TermWeighting`."""
        return self.index.analyzer

    def idf(self, terms: Collection[str]) -> dict[str, float]:
        """See `TermWeighting`."""
        return IndexEngine(self.index, self.stage).idf(terms)

    @property
    def attachments(self) -> Mapping[str, AttachmentSchema]:
        """See `Index.attachments`."""
        return self.index.attachments

    def attachment(self, name: str) -> Attachment | None:
        """See `Index.attachment`."""
        return self.index.attachment(name)

    def _nearest(self, query: str, depth: int) -> list[NDArray[np.bool_]]:
        """Return a mask (documents,) of the nearest documents for each part of the index."""
        count = self.match.nearest(depth)
        allowed = live_masks(self.index, self.stage.selection(ALL, ()))
        if not count or not self._embedding.has_tokens(query):
            return [np.zeros_like(mask) for mask in allowed]
        masks = self._vectors.nearest_documents(self._embedding.embed(query), allowed, count)
        if sum(int(mask.sum()) for mask in masks) <= count:
            return masks
        nearest = set(self._rank_by_cosine(query, masks, count).doc_ids)
        for part, mask in zip(self.index.parts, masks, strict=True):
            found = np.flatnonzero(mask)
            mask[found] = [doc_id in nearest for doc_id in part.doc_ids.take(found)]
        return masks

    def _with_matching(self, query: str, masks: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
        """Add the documents that match the query's terms to the masks of the index's parts."""
        matching = matching_documents(self.index, query, self.stage)
        return [a | b for a, b in zip(masks, matching, strict=True)]

    @property
    def model_fingerprint(self) -> str:
        """The fingerprint of the embedding model."""
        return self._embedding.fingerprint

    def cut_tokens(self, query: str) -> int:
        """Return how many tokens of a query the model does not read; see `VectorMatch`.

        Raises InputError if the others are too many for the model.
        """
        return self._embedding.cut_tokens(query)
