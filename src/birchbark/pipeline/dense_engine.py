"""How are candidates retrieved by stored vectors, with or without matching terms?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from birchbark.combine.fusion import fuse_rankings
from birchbark.errors import InputError, require_at_least
from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.index import Index
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import embedding_scorer
from birchbark.pipeline.stored.stored_segments import PrecomputedSegments
from birchbark.pipeline.stored.vector_sets import fitting_set, vector_sets
from birchbark.pipeline.vector_match import HYBRID, CandidateScores, VectorMatch
from birchbark.records import Document, Float32s, Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import (
    ExtraCandidates,
    FirstStage,
    matching_documents,
    rank_query,
)
from birchbark.retrieve.match import OR
from birchbark.retrieve.rank_terms import RankTerms, rank
from birchbark.retrieve.vector_search import StoredVectors, filter_masks
from birchbark.score.scorer import Scorer, cut_text
from birchbark.score.vector_quantization import inner_products
from birchbark.segment.by_name import parse_segmenter
from birchbark.text.analyzer import Analyzer

ATTACH = "birchbark index attach"
MAX_COMPARED = 1_000_000  # vectors without a graph, in 0.06 s; more only for those who ask for it


class DenseEngine:
    """A first stage over an index with stored vectors of segments.

    A document's cosine is that of its segment nearest to the query. Documents without stored
    vectors cannot be retrieved by cosine. If the index has HNSW graphs, the search for the nearest
    documents is approximate and may miss some. Scores are exact in any case: cosines equal the
    scores of the same embedding model as a re-ranker, and other scores equal those of
    `IndexEngine`.

    Args:
        index: The index, with vectors stored by `birchbark index attach INDEX --vectors MODEL`.
        load: Returns the scorer of a model by its name; called with the name of the model that
            computed the vectors. `load_scorer` will do.
        match: Which documents are candidates. Defaults to `VectorMatch()`: the nearest ones,
            scored by cosine.
        stage: The first stage whose model, fields, filters and expansion are used. `match.terms`
            takes precedence over its match. Defaults to `FirstStage()`: BM25.
        query_tokens: Number of tokens at the beginning of a query that the model reads. Defaults to
            None: all of them, and a query that is too long is refused.

    Raises:
        InputError: The index has no vectors, or `load` returns another model than the one that
            computed them.
    """

    def __init__(
        self,
        index: Index,
        load: Callable[[str], Scorer],
        match: VectorMatch = VectorMatch(),
        stage: FirstStage = FirstStage(),
        query_tokens: int | None = None,
    ) -> None:
        config = index.attachments[_vector_set(index, match.vectors)].config
        self.index, self.match, self._query_tokens = index, match, query_tokens
        self.stage = stage if match.terms is None else replace(stage, match=match.terms)
        self._rank_terms: RankTerms = rank
        scorer = load(config["model"])
        segmenter = parse_segmenter(config["segments"])
        self._precomputed = PrecomputedSegments(index, scorer, segmenter)
        embedding, attachment = embedding_scorer(scorer), self._precomputed.vectors
        if embedding is None or attachment is None:
            raise InputError(
                f"the vectors were made by a model or version other than {config['model']}",
                where=str(index.directory),
                remedy=f"{ATTACH} {index.directory}",
            )
        self._embedding = embedding
        self._vectors = StoredVectors.of(index, attachment, inner_products)

    def rank(self, query: str, depth: int) -> Ranking:
        """See `Engine.rank`.

        With `match.terms`, unless candidates are scored by cosine, the best of a deeper ranking may
        be others.
        """
        require_at_least("depth", depth, 1)
        candidates = self._nearest(query, depth)
        if self.match.scores is CandidateScores.RRF:
            by_terms = rank_query(self.index, query, self.stage, depth, rank_terms=self._rank_terms)
            return fuse_rankings([by_terms, self._rank_by_cosine(query, candidates, depth)], depth)
        if self.match.scores is CandidateScores.FIRST_STAGE:
            extra = ExtraCandidates(candidates, self.match.terms is not None)
            return rank_query(self.index, query, self.stage, depth, extra, self._rank_terms)
        if self.match.terms is not None:
            allowed = self._with_matching(query, candidates)
            candidates = self._vectors.nearest_documents(
                self._embed(query), allowed, depth, exactly=True
            )
        return self._rank_by_cosine(query, candidates, depth)

    def _rank_by_cosine(self, query: str, masks: list[NDArray[np.bool_]], depth: int) -> Ranking:
        """Return the `depth` best of the documents in `masks` (documents,), one for each part."""
        doc_ids = [
            doc_id
            for part, mask in zip(self.index.parts, masks, strict=True)
            for doc_id in part.doc_ids.take(np.flatnonzero(mask))
        ]
        by_document = self._precomputed.scores(self._cut(query)[0], doc_ids)
        scores = [values.max() for values in by_document if values is not None]
        return Ranking.of(doc_ids, np.array(scores, np.float32), depth)

    def filtered(self, filters: Mapping[str, str]) -> DenseEngine:
        """Return an engine that also requires these field values."""
        other = copy(self)
        other.stage = self.stage.filtered(filters)
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
        allowed = filter_masks(self.index, self.stage.filters)
        if not count or not self._embedding.spans(query):
            return [np.zeros_like(mask) for mask in allowed]
        masks = self._vectors.nearest_documents(self._embed(query), allowed, count)
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
        """Return how many tokens of a query the model does not read; see `query_tokens`.

        Raises InputError if the others are too many for the model.
        """
        return self._cut(query)[1]

    def _cut(self, query: str) -> tuple[str, int]:
        """Return what the model reads of a query, and the number of the other tokens."""
        read, cut = cut_text(self._embedding, query, self._query_tokens)
        self._embedding.token_budget(read)  # raises InputError
        return read, cut

    def _embed(self, query: str) -> Float32s:
        """Return the vector (H,) of a query; InputError if it is too long."""
        query = self._cut(query)[0]
        vector: Float32s = self._embedding.embed(self._embedding.encode([query]))[0]
        return vector


def open_engine(
    index: Index,
    stage: FirstStage,
    match: VectorMatch | None,
    load: Callable[[str], Scorer],
    rankers: Sequence[Ranker] = (),
    query_tokens: int | None = None,
) -> IndexEngine | DenseEngine:
    """Return the engine that finds candidates for `rankers`, or hits if there are none.

    Args:
        index: The index.
        stage: The first stage.
        match: How vectors are used. None to choose: half of the candidates are found by the vectors
            that the first ranker uses (`HYBRID`). Terms alone find them if there is no
            ranker, if the stage has another match than `OR`, or if the index has no such vectors,
            or more than MAX_COMPARED without a graph.
        load: See `DenseEngine`.
        rankers: The stages that re-rank the candidates. Defaults to none.
        query_tokens: See `DenseEngine`. Defaults to that of the first ranker.
    """
    if rankers and query_tokens is None:
        query_tokens = rankers[0].query_tokens
    if match is not None:
        if not match.used:
            return IndexEngine(index, stage)
        return DenseEngine(index, load, match, stage, query_tokens)
    embedding = rankers[0].vector_scorer if rankers else None
    vectors = set_for(index, rankers)
    if embedding is None or vectors is None or stage.match != OR:
        return IndexEngine(index, stage)
    match = replace(HYBRID, vectors=vectors)
    engine = DenseEngine(index, lambda model: embedding, match, stage, query_tokens)
    return engine if engine.vectors_without_graph <= MAX_COMPARED else IndexEngine(index, stage)


def set_for(index: Index, rankers: Sequence[Ranker]) -> str | None:
    """Return the name of the set of vectors that the first ranker uses; None if there is none."""
    scorer = rankers[0].vector_scorer if rankers else None
    embedding = embedding_scorer(scorer) if scorer else None
    if embedding is None:
        return None
    return fitting_set(index.attachments, embedding, rankers[0].segmenter)


def _vector_set(index: Index, name: str | None) -> str:
    """Return the name of the index's set of vectors, the first one by default.

    Raises InputError if there is no such set.
    """
    sets, where = vector_sets(index.attachments), str(index.directory)
    if not sets:
        raise InputError("the index has no vectors", where=where, remedy=f"{ATTACH} {where}")
    if name is not None and name not in sets:
        raise InputError(
            "no such set of vectors", where=where, found=name, wanted=" or ".join(sets)
        )
    return name or sets[0]
