"""How are documents' segments scored for one query, before a deadline, and which have been?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from birchbark.deadline import Deadline
from birchbark.pipeline.reading.document_reader import BATCH_SIZE, DocumentReader, EncodedDocument
from birchbark.records import Document, Float32s, Ids, Segment
from birchbark.score_cache.cached_scorer import cached_for_query
from birchbark.score_cache.score_file import row_shape
from birchbark.score_cache.score_in_time import SPECIAL_TOKENS, score_before
from birchbark.segment.split_long import Encoded

BATCH_CHARACTERS = 500_000  # total length of documents scored together: limits memory
DEADLINE_BATCH_CHARACTERS = 2_000  # the same under a deadline, so that some documents are complete


class QueryScoring:
    """Scores segments for one query with one scorer; equal segments are scored once."""

    def __init__(self, reader: DocumentReader, query: str) -> None:
        """Prepare to score for `query`; InputError if it is too long for the scorer.

        Attribute reader: the reader, for what does not depend on the query.
        """
        self.reader, self._query = reader, query
        self._token_budget = reader.scorer.token_budget(query)
        self._overhead = len(reader.scorer.spans(query)) + SPECIAL_TOKENS
        self._scorer = cached_for_query(reader.scorer)

    @property
    def pairs(self) -> int:
        """Number of distinct segments scored so far, by the model or from a score cache."""
        return self._scorer.misses

    def vector_scores(self, doc_ids: Sequence[str]) -> list[Float32s | None]:
        """Score each document's segments (n,) by stored vectors; None for one without vectors."""
        return self.reader.vector_scores(self._query, doc_ids)

    def encode(self, segments: Sequence[Segment]) -> list[list[Encoded]]:
        """Return each segment's chunks with their token ids."""
        return self.reader.encode(segments, self._token_budget)

    def segments(self, doc_ids: Sequence[str]) -> Iterator[tuple[Document, Sequence[Segment]]]:
        """Yield each document with its scored segments, in the order of their scores' array."""
        return self.reader.segments(doc_ids, self._token_budget)

    def read_batch(self, doc_ids: Sequence[str], deadline: Deadline) -> list[EncodedDocument]:
        """Encode as many of the first documents as should be scored together; at least one."""
        remaining = DEADLINE_BATCH_CHARACTERS if deadline.exists else BATCH_CHARACTERS
        batch = []
        batch_size = 1 if deadline.exists else BATCH_SIZE
        for encoded in self.reader.read(doc_ids, self._token_budget, batch_size):
            batch.append(encoded)
            remaining -= encoded.size
            if remaining <= 0 or deadline.passed:
                break
        return batch

    def read(self, doc_ids: Sequence[str]) -> Iterator[EncodedDocument]:
        """Encode each document lazily."""
        return self.reader.read(doc_ids, self._token_budget)

    def score_encoded(self, token_ids: Sequence[Ids], deadline: Deadline) -> Float32s:
        """Return the scores of as many of the first segments as time allows; see `score_before`."""
        return score_before(deadline, self._scorer, self._query, token_ids, self._overhead)

    def score(self, documents: Sequence[Sequence[Ids]], deadline: Deadline) -> list[Float32s]:
        """Return the segment scores (n,), or vectors (n, width), of each document as float32.

        documents: the token ids of their segments. Under a deadline the result may cover only the
        first documents, or none.
        """
        token_ids = [ids for document in documents for ids in document]
        scores = self.score_encoded(token_ids, deadline)
        ends = np.cumsum([len(document) for document in documents], dtype=np.intp)
        complete = int(np.searchsorted(ends, len(scores), side="right"))  # documents
        return [values.copy() for values in np.split(scores, ends[:complete])[:complete]]


@dataclass(slots=True)
class DocumentReading:
    """The segments of one document that the main scorer reads, best first, and their scores so far.

    token_ids: of the segments to read, in document order; none if stored vectors give the scores.
    order: their positions in the order of reading. segments: these segments; None if the reader
    splits the document again when its hit is shown. truncated: tokens that a limit left out.
    scores: float32 (n,), or (n, width) for a document scorer; valid for the segments that have been
    read.
    """

    token_ids: Sequence[Ids]
    order: Sequence[int]
    segments: Sequence[Segment] | None = None
    truncated: int = 0
    width: int = 1
    read: int = 0
    scores: Float32s = field(init=False)

    def __post_init__(self) -> None:
        self.scores = np.zeros((len(self.order), *row_shape(self.width)), np.float32)

    @classmethod
    def of_vectors(cls, scores: Float32s) -> DocumentReading:
        """Return the complete reading of a document whose segments stored vectors score, (n,)."""
        reading = cls((), range(len(scores)), read=len(scores))
        reading.scores = scores
        return reading

    @classmethod
    def of_whole(cls, encoded: EncodedDocument, width: int) -> DocumentReading:
        """Return the reading of a document from beginning to end. width: of the scorer's values."""
        ids = encoded.token_ids
        return cls(ids, range(len(ids)), truncated=encoded.truncated, width=width)

    @property
    def complete(self) -> bool:
        """Whether everything has been read."""
        return self.read == len(self.order)

    @property
    def known(self) -> list[int]:
        """The positions of the segments that have been read, in document order."""
        return sorted(self.order[: self.read])

    @property
    def known_scores(self) -> Float32s:
        """The scores (n,), or vectors (n, width), of the segments that have been read."""
        return self.scores if self.complete else self.scores[self.known]

    def next(self, count: int | None = None) -> list[Ids]:
        """Return the token ids of the next `count` segments to read; of all if None."""
        end = None if count is None else self.read + count
        return [self.token_ids[i] for i in self.order[self.read : end]]

    def add(self, scores: Float32s) -> None:
        """Add the scores of the next segments."""
        self.scores[list(self.order[self.read : self.read + len(scores)])] = scores
        self.read += len(scores)
