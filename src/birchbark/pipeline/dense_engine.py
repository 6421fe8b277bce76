"""How are candidates retrieved by stored vectors, with or without matching terms?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from birchbark.combine.fusion import fuse_rankings
from birchbark.errors import InputError, require_at_least
from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.index import Index
from birchbark.pipeline.precompute import embedding_scorer
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.read_precomputed import PrecomputedSegments
from birchbark.pipeline.vector_sets import fitting_set, vector_sets
from birchbark.records import Document, Float32s, Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import (
    ExtraCandidates,
    FirstStage,
    matching_documents,
    rank_query,
)
from birchbark.retrieve.match import OR, Match, parse_match
from birchbark.retrieve.vector_search import StoredVectors, filter_masks
from birchbark.score.scorer import Scorer, cut_query
from birchbark.score.vector_quantization import inner_products
from birchbark.segment.by_name import parse_segmenter
from birchbark.text.analyzer import Analyzer

NO_VECTORS_REMEDY = "birchbark index attach INDEX --vectors MODEL"
MAX_COMPARED = 1_000_000  # vectors without a graph, in 0.06 s; more only for those who ask for it


class CandidateScores(Enum):
    """What the scores of candidates are.

    FIRST_STAGE: those of the first stage's model, such as BM25.
    COSINE: the cosine of the query and the document's nearest segment, negative cosines set to 0.
    RRF: sums of the reciprocal ranks by FIRST_STAGE and by COSINE (Cormack et al. 2009).
    """

    FIRST_STAGE = "first stage"
    COSINE = "cosine"
    RRF = "rrf"


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """How a `DenseEngine` chooses candidates and scores them.

    Attributes:
        count: Number of documents nearest to the query that become candidates. 0 for none.
            Defaults to None: as many as there are places for.
        terms: Documents that match the query's terms in this way (`OR`, `AND`, or another
            `Match`) become candidates as well. Defaults to None: no documents by terms.
        scores: How candidates are scored. Defaults to `CandidateScores.COSINE`. Since the model of
            the `FIRST_STAGE` may rank the nearest documents last, they are in its ranking in any
            case, but take at most half of its places. `RRF` needs `count` and `terms`.
        vectors: The name of the index's set of vectors, such as `vectors-2`. Defaults to None:
            the first one.
    """

    count: int | None = None
    terms: Match | None = None
    scores: CandidateScores = CandidateScores.COSINE
    vectors: str | None = None

    def __post_init__(self) -> None:
        require_at_least("number of nearest documents", self.count, 0)
        if self.count == 0 and self.terms is None:
            raise InputError("no document would be a candidate", wanted="a count above 0, or terms")
        if self.scores is CandidateScores.RRF and (self.count == 0 or self.terms is None):
            raise InputError(
                "reciprocal rank fusion needs candidates by vectors and by terms",
                wanted="a match such as nearest+or",
            )
        if self.vectors is not None and not self.used:
            raise InputError(
                "a set of vectors is given, but no vectors are used",
                found=self.vectors,
                wanted="nearest in the match, such as nearest+or",
            )

    @property
    def used(self) -> bool:
        """Whether vectors are used, whether to find candidates or to score them."""
        return self.scores is not CandidateScores.FIRST_STAGE or self.count != 0

    def nearest(self, depth: int) -> int:
        """Return how many of the nearest documents are candidates for a ranking of `depth`."""
        shared = self.terms is not None and self.scores is CandidateScores.FIRST_STAGE
        places = depth // 2 if shared else depth
        if self.count is None:
            return places
        return min(self.count, places) if shared else self.count


BY_TERMS = VectorMatch(0, OR, CandidateScores.FIRST_STAGE)
"""Candidates contain any of the query's terms; vectors are not used."""

HYBRID = VectorMatch(None, OR, CandidateScores.FIRST_STAGE)
"""Half of the candidates are the nearest documents, the others the best that contain any term."""

DEFAULT_MATCH = {
    CandidateScores.FIRST_STAGE: BY_TERMS,
    CandidateScores.COSINE: VectorMatch(),
    CandidateScores.RRF: VectorMatch(None, OR, CandidateScores.RRF),
}


def parse_vector_match(text: str, scores: CandidateScores) -> VectorMatch:
    """Parse MATCH (see `parse_match`), nearest, nearest:COUNT, nearest+MATCH, nearest:COUNT+MATCH.

    An empty text stands for DEFAULT_MATCH: documents with any query term, the nearest documents, or
    both for RRF.
    """
    if not text:
        return DEFAULT_MATCH[scores]
    before, plus, after = text.partition("+")
    name, colon, number = before.partition(":")
    nearest = name == "nearest"
    by_terms = after if nearest else text
    wrong = nearest and (number.isdecimal() != bool(colon) or bool(after) != bool(plus))
    try:
        terms = parse_match(by_terms) if by_terms else None
    except InputError:
        wrong = True
    if wrong:
        raise InputError(
            f"unknown match {text!r}",
            wanted="or, and, all, a number, nearest or nearest:COUNT; or both, as in nearest+or",
        )
    count = (int(number) if colon else None) if nearest else 0
    return VectorMatch(count, terms, scores)


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
        scorer = load(config["model"])
        segmenter = parse_segmenter(config["segments"])
        self._precomputed = PrecomputedSegments(index, scorer, segmenter)
        embedding, attachment = embedding_scorer(scorer), self._precomputed.vectors
        if embedding is None or attachment is None:
            raise InputError(
                f"the vectors were made by a model or version other than {config['model']}",
                where=str(index.directory),
                remedy=NO_VECTORS_REMEDY,
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
            by_terms = rank_query(self.index, query, self.stage, depth)
            return fuse_rankings([by_terms, self._rank_by_cosine(query, candidates, depth)], depth)
        if self.match.scores is CandidateScores.FIRST_STAGE:
            extra = ExtraCandidates(candidates, self.match.terms is not None)
            return rank_query(self.index, query, self.stage, depth, extra)
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
        read, cut = cut_query(self._embedding, query, self._query_tokens)
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
        raise InputError("the index has no vectors", where=where, remedy=NO_VECTORS_REMEDY)
    if name is not None and name not in sets:
        raise InputError(
            "no such set of vectors", where=where, found=name, wanted=" or ".join(sets)
        )
    return name or sets[0]
