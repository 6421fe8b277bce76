"""How are the segments of documents scored for one query, in batches and before a deadline?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from birchbark.deadline import Deadline
from birchbark.pipeline.reading.document_reader import BATCH_SIZE, DocumentReader, EncodedDocument
from birchbark.pipeline.reading.split_for_query import SplitForQuery
from birchbark.records import Document, Float32s, Ids, Segment
from birchbark.retrieve.term_overlap import TermOverlap
from birchbark.score_cache.cached_scorer import cached_for_query
from birchbark.score_cache.score_in_time import SPECIAL_TOKENS, score_before
from birchbark.segment.split_long import Encoded

BATCH_CHARACTERS = 500_000  # total length of documents scored together: limits memory
DEADLINE_BATCH_CHARACTERS = 2_000  # the same under a deadline, so that some documents are complete


class SegmentScoring:
    """Scores segments for one query with one scorer; equal segments are scored once."""

    def __init__(self, reader: DocumentReader, query: str) -> None:
        """Prepare to score for `query`; InputError if it is too long for the scorer."""
        self._reader, self._query = reader, query
        self._token_budget = reader.scorer.token_budget(query)
        self._overhead = len(reader.scorer.spans(query)) + SPECIAL_TOKENS
        self._scorer = cached_for_query(reader.scorer)

    @property
    def pairs(self) -> int:
        """Number of distinct segments scored so far, by the model or from a score cache."""
        return self._scorer.misses

    def vector_scores(self, doc_ids: Sequence[str]) -> list[Float32s | None]:
        """Score each document's segments (n,) by stored vectors; None for one without vectors."""
        return self._reader.vector_scores(self._query, doc_ids)

    def split(
        self, doc_id: str, overlap: TermOverlap, deadline: Deadline, limit: int | None = None
    ) -> SplitForQuery:
        """Return a document split into segments; see DocumentReader."""
        return self._reader.split(doc_id, overlap, deadline, limit)

    def encode(self, segments: Sequence[Segment]) -> list[list[Encoded]]:
        """Return each segment's chunks with their token ids."""
        return self._reader.encode(segments, self._token_budget)

    def length(self, doc_id: str) -> int:
        """Return the number of characters of a document."""
        return self._reader.length(doc_id)

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """Return the documents with these ids."""
        return self._reader.documents(doc_ids)

    def segments(self, doc_ids: Sequence[str]) -> Iterator[tuple[Document, Sequence[Segment]]]:
        """Yield each document with its scored segments, in the order of their scores' array."""
        return self._reader.segments(doc_ids, self._token_budget)

    def read_batch(self, doc_ids: Sequence[str], deadline: Deadline) -> list[EncodedDocument]:
        """Encode as many of the first documents as should be scored together; at least one."""
        remaining = DEADLINE_BATCH_CHARACTERS if deadline.exists else BATCH_CHARACTERS
        batch = []
        batch_size = 1 if deadline.exists else BATCH_SIZE
        for encoded in self._reader.read(doc_ids, self._token_budget, batch_size):
            batch.append(encoded)
            remaining -= encoded.size
            if remaining <= 0 or deadline.passed:
                break
        return batch

    def read(self, doc_ids: Sequence[str]) -> Iterator[EncodedDocument]:
        """Encode each document lazily."""
        return self._reader.read(doc_ids, self._token_budget)

    def score_encoded(self, token_ids: Sequence[Ids], deadline: Deadline) -> Float32s:
        """Return the scores of as many of the first segments as time allows; see `score_before`."""
        return score_before(deadline, self._scorer, self._query, token_ids, self._overhead)

    def score(
        self, documents: Sequence[EncodedDocument], deadline: Deadline
    ) -> list[Float32s] | None:
        """Return the segment scores (n,), or vectors (n, width), of each document as float32.

        Under a deadline the result may cover only the first documents; it is None if time does not
        suffice for even one document.
        """
        token_ids = [ids for document in documents for ids in document.token_ids]
        scores = self.score_encoded(token_ids, deadline)
        ends = np.cumsum([len(document.token_ids) for document in documents], dtype=np.intp)
        complete = int(np.searchsorted(ends, len(scores), side="right"))  # documents
        if documents and not complete:
            return None
        return [values.copy() for values in np.split(scores, ends[:complete])[:complete]]
