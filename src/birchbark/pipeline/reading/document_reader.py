"""How do documents become the token ids that a scorer reads, split to its token budget?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import islice

from birchbark.deadline import Deadline
from birchbark.errors import InputError
from birchbark.pipeline.reading.stretches import (
    SplitForQuery,
    SplitStretches,
    split_for_query,
)
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.stored_segments import PrecomputedSegments
from birchbark.recently_used import RecentlyUsed
from birchbark.records import Document, Float32s, Ids, Segment
from birchbark.retrieve.engine import DocumentStore
from birchbark.retrieve.term_overlap import KnownTokens, TermIndex, TermOverlap
from birchbark.score.scorer import Scorer
from birchbark.segment.by_name import Segmenter
from birchbark.segment.split_long import Encoded, split_long
from birchbark.segment.truncate import Limit, count_truncated_tokens

CACHED_CHARACTERS = 10_000_000  # about 80 MB
BATCH_SIZE = 8  # documents fetched and encoded at once
CHARACTERS_PER_TOKEN = 5


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """The token ids of a document's segments, in document order.

    size: approximate length in characters. truncated: number of tokens that a limit left out.
    """

    token_ids: tuple[Ids, ...]
    size: int
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class SplitDocument:
    """A document, its segments, and their token ids in the same order."""

    document: Document
    segments: tuple[Segment, ...]
    encoded: EncodedDocument


class SplitCache:
    """The most recently split documents of a reader, with and without token ids."""

    def __init__(self) -> None:
        self.encoded: RecentlyUsed[tuple[str, int], SplitDocument] = RecentlyUsed(CACHED_CHARACTERS)
        self.unencoded: SplitStretches = RecentlyUsed(CACHED_CHARACTERS)


class DocumentReader:
    """Reads the documents of a store for one scorer, and caches the most recently used ones.

    Threads may share a reader. Its attribute `scorer` is the given scorer or, if the store has
    vectors computed by that scorer, one that rounds vectors as the stored ones are rounded.
    """

    def __init__(
        self,
        store: DocumentStore,
        scorer: Scorer,
        segmenter: Segmenter,
        limit: Limit,
        cache: SplitCache | None = None,
        *,
        with_vectors: bool = True,
    ) -> None:
        """Open the store's precomputed tokens and vectors, which are not used under a limit.

        cache: that of another reader with the same documents, segmenter and limit, and a scorer
        that encodes texts alike. with_vectors: whether stored vectors may be those of the scorer.
        """
        self.documents, self._segmenter, self._limit = store.documents, segmenter, limit
        self._precomputed = PrecomputedSegments(
            store if limit == Limit() else None, scorer, segmenter, with_vectors=with_vectors
        )
        self.scorer = self._precomputed.scorer
        cache = cache or SplitCache()
        self._encoded, self._unencoded = cache.encoded, cache.unencoded

    def vector_scores(self, query: str, doc_ids: Sequence[str]) -> list[Float32s | None]:
        """Score each document's segments (n,) by stored vectors; None for one without vectors."""
        return self._precomputed.scores(query, doc_ids)

    def read(
        self, doc_ids: Sequence[str], token_budget: int, batch_size: int = BATCH_SIZE
    ) -> Iterator[EncodedDocument]:
        """Yield each document encoded, in order and lazily.

        token_budget: the maximum number of tokens per segment (`Scorer.token_budget`). batch_size:
        number of documents split at a time.
        """
        remaining = iter(doc_ids)
        while batch := list(islice(remaining, batch_size)):
            stored = self._precomputed.token_ids(batch, token_budget)
            missing = [d for d, ids in zip(batch, stored, strict=True) if ids is None]
            split = iter(self._split(missing, token_budget))
            for token_ids in stored:
                if token_ids is None:
                    yield next(split).encoded
                else:
                    size = CHARACTERS_PER_TOKEN * sum(map(len, token_ids))
                    yield EncodedDocument(token_ids, size)

    def segments(
        self, doc_ids: Sequence[str], token_budget: int
    ) -> Iterator[tuple[Document, Sequence[Segment]]]:
        """Yield each document with the segments that `read` encodes and `vector_scores` scores."""
        documents = self.documents(doc_ids)
        stored = self._precomputed.segments(documents, token_budget)
        for document, segments in zip(documents, stored, strict=True):
            if segments is None:
                yield document, self._split([document.doc_id], token_budget)[0].segments
            else:
                yield document, segments

    def split(
        self, doc_id: str, overlap: TermOverlap, deadline: Deadline, limit: int | None = None
    ) -> SplitForQuery:
        """Return a document split into segments for a query; nothing is tokenised.

        limit: see `split_for_query`; the reader's own limit does not apply.
        """
        whole = doc_id, -1 if limit is None else -limit
        segments = self._unencoded.get(whole)
        if segments is not None:
            return SplitForQuery(segments)
        (document,) = self.documents([doc_id])
        known = self._unencoded
        split = split_for_query(document, self._segmenter, overlap, deadline, known, limit)
        if split.in_time and not split.unsplit:
            known.add(whole, split.segments, len(document.contents))
        return split

    def encode(self, segments: Sequence[Segment], token_budget: int) -> list[list[Encoded]]:
        """Return each segment's chunks with their token ids; most segments are one chunk."""
        return split_long(segments, token_budget, self.scorer.encode, self.scorer.spans)

    def _split(self, doc_ids: Sequence[str], token_budget: int) -> list[SplitDocument]:
        """Split and encode each document, or take it from the cache."""
        split = {
            doc_id: entry
            for doc_id in doc_ids
            if (entry := self._encoded.get((doc_id, token_budget)))
        }
        missing = [doc_id for doc_id in doc_ids if doc_id not in split]
        if missing:
            for entry in self._split_uncached(missing, token_budget):
                split[entry.document.doc_id] = entry
                key = (entry.document.doc_id, token_budget)
                self._encoded.add(key, entry, entry.encoded.size)
        return [split[doc_id] for doc_id in doc_ids]

    def _split_uncached(self, doc_ids: Sequence[str], token_budget: int) -> Iterator[SplitDocument]:
        documents = self.documents(doc_ids)
        segments = [self._segmenter(document) for document in documents]
        encode, spans = self.scorer.encode, self.scorer.spans
        flat = [segment for of_document in segments for segment in of_document]
        fitted = iter(split_long(flat, token_budget, encode, spans))  # the chunks of each segment
        for document, full in zip(documents, segments, strict=True):
            limited = self._limit.apply(list(islice(fitted, len(full))), spans)
            read = tuple(segment for segment, _ in limited)
            lost = (
                0
                if self._limit == Limit()
                else count_truncated_tokens(document, full, read, encode)
            )
            token_ids = tuple(ids for _, ids in limited)
            encoded = EncodedDocument(token_ids, len(document.contents), lost)
            yield SplitDocument(document, read, encoded)


@dataclass(frozen=True, slots=True)
class ReaderCaches:
    """What document readers remember: one cache per scorer, and the tokens seen so far."""

    main: SplitCache = field(default_factory=SplitCache)
    embedding: SplitCache = field(default_factory=SplitCache)
    precise: SplitCache = field(default_factory=SplitCache)
    tokens: KnownTokens = field(default_factory=KnownTokens)


class RankerReaders:
    """A ranker with one document reader per scorer, over one store; shared by many queries."""

    def __init__(
        self, store: DocumentStore, ranker: Ranker, caches: ReaderCaches | None = None
    ) -> None:
        """caches: of readers with the same documents and an equal `scoring_key`."""
        self.ranker = ranker
        caches = caches or ReaderCaches()

        def reader(
            scorer: Scorer, cache: SplitCache, *, with_vectors: bool = True
        ) -> DocumentReader:
            segmenter, limit = ranker.segmenter, ranker.limit
            return DocumentReader(store, scorer, segmenter, limit, cache, with_vectors=with_vectors)

        embedding, precise = ranker.embedding, ranker.precise
        self.main = reader(ranker.scorer, caches.main)
        self.embedding = reader(embedding, caches.embedding) if embedding else None
        fast = embedding and ranker.fast_embedding  # splits and encodes texts as the embedding does
        self.fast_embedding = (
            reader(fast, caches.embedding, with_vectors=False) if fast else self.embedding
        )
        static = embedding and ranker.static
        self.static = reader(static, SplitCache()) if static else None
        self.precise = reader(precise, caches.precise) if precise else None
        self.terms = TermIndex(store, caches.tokens)

    def with_ranker(self, ranker: Ranker) -> RankerReaders:
        """Return the same readers with a ranker that scores segments in the same way.

        Raises InputError for a ranker with another `scoring_key`.
        """
        if self.ranker.scoring_key != ranker.scoring_key:
            raise InputError("the ranker has other scorers, segments or limits than the readers")
        other = copy(self)
        other.ranker = ranker
        return other
