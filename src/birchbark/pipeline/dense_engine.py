"""How are candidates retrieved by stored vectors, with or without matching terms?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.combine.fusion import fuse_rankings
from birchbark.errors import require_at_least
from birchbark.pipeline.stored.stored_embedding import StoredEmbedding
from birchbark.records import Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import (
    ExtraCandidates,
    ids_in,
    matching_documents,
    rank_query,
    share_in,
)
from birchbark.retrieve.match import ALL
from birchbark.retrieve.vector_match import CandidateScores, VectorMatch
from birchbark.retrieve.vector_search import StoredVectors, live_masks


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseEngine(IndexEngine):
    """A first stage over an index with stored vectors of segments.

    A document's cosine is that of its segment nearest to the query. Documents without stored
    vectors cannot be retrieved by cosine. If the index has HNSW graphs, the search for the nearest
    documents is approximate and may miss some. Scores are exact in any case: by cosine, they equal
    those of the same embedding model as a re-ranker, but that scores which it clips to 0 or 1 keep
    the order of their cosines; other scores equal those of `IndexEngine`.

    Attributes:
        match: Which documents are candidates, and how they are scored. By terms, those of
            `stage.match` are, if `match.terms` is not None.
        embedding: Embeds queries, and scores documents by the vectors that the index stores.
        vectors: These vectors, to search for the nearest ones.
    """

    match: VectorMatch
    embedding: StoredEmbedding
    vectors: StoredVectors

    def rank(self, query: str, depth: int) -> Ranking:
        """See `Engine.rank`.

        With `match.terms`, unless candidates are scored by cosine, the best of a deeper ranking may
        be others.
        """
        require_at_least("depth", depth, 1)
        candidates = self._nearest(query, depth)
        if self.match.scores is CandidateScores.RRF:
            by_terms = rank_query(self.index, query, self.stage, depth, rank_terms=self.rank_terms)
            return fuse_rankings([by_terms, self._rank_by_cosine(query, candidates, depth)], depth)
        if self.match.scores is CandidateScores.FIRST_STAGE:
            extra = ExtraCandidates(candidates, self.match.terms is not None)
            return rank_query(self.index, query, self.stage, depth, extra, self.rank_terms)
        if self.match.terms is not None:
            allowed = self._with_matching(query, candidates)
            candidates = self.vectors.nearest_documents(
                self.embedding.embed(query), allowed, depth, exactly=True
            )
        return self._rank_by_cosine(query, candidates, depth)

    def _rank_by_cosine(self, query: str, masks: list[NDArray[np.bool_]], depth: int) -> Ranking:
        """Return the `depth` best of the documents in `masks` (documents,), one for each part."""
        doc_ids = ids_in(masks, self.index)
        scores = self.embedding.scores(query, doc_ids)
        known = np.flatnonzero(~np.isnan(scores))
        return Ranking.of([doc_ids[number] for number in known], scores[known], depth)

    @property
    def name(self) -> str:
        """The tag of its runs: `dense`, `NAME+dense-rrf` or `NAME+nearest`, NAME of the stage."""
        if self.match.scores is CandidateScores.COSINE:
            return "dense"
        fused = self.match.scores is CandidateScores.RRF
        return f"{self.stage.name}+{'dense-rrf' if fused else 'nearest'}"

    def match_ratio(self, query: str, depth: int) -> float:
        """Return the share of all documents that are candidates for the query, 0 to 1."""
        candidates = self._nearest(query, depth)
        if self.match.terms is not None:
            candidates = self._with_matching(query, candidates)
        return share_in(candidates, self.index)

    def _nearest(self, query: str, depth: int) -> list[NDArray[np.bool_]]:
        """Return a mask (documents,) of the nearest documents for each part of the index."""
        count = self.match.nearest(depth)
        allowed = live_masks(self.index, self.stage.selection(ALL, ()))
        if not count or not self.embedding.has_tokens(query):
            return [np.zeros_like(mask) for mask in allowed]
        masks = self.vectors.nearest_documents(self.embedding.embed(query), allowed, count)
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
