"""What does a query get? Hits, why they are there, and how much was read for them."""

from __future__ import annotations

from dataclasses import dataclass

from birchbark.records import Document, Segment


@dataclass(frozen=True, slots=True)
class Evidence:
    """One segment's part in its document's score: weight times score.

    weight: the aggregation's, times 1 − a; so the parts add up to the hit's evidence.
    """

    segment: Segment
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked document, and why it is where it is.

    score = first_stage + embedding + evidence: first_stage is a · s_doc, evidence is Σ weight ·
    score of the segments, embedding what a second scorer adds. segments: those with a weight above
    0, the highest share first. compared: what comparisons with others gave it, which ranks it above
    all that were not compared; None where it was not. settled: false where the document
    was not read, for it lies below the depth, or time ran out; it then has no evidence.
    """

    document: Document
    score: float
    first_stage: float
    evidence: float
    segments: tuple[Evidence, ...]
    embedding: float = 0.0
    settled: bool = True
    compared: float | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """How much was read of what could have been read.

    candidates: of the first stage, up to the depth. settled: those whose score is known. pairs:
    distinct pairs of query and segment that were scored, or found in a store. by_vectors: documents
    that were scored by vectors which the index keeps. unread_tokens: of settled documents, where a
    limit was asked for; they lie in unread_documents. comparisons: of two documents.
    unread_compared: tokens of compared segments, for which an input of two texts has no room.
    exact: the ranking is the one that settling all candidates, and comparing all that are to be
    compared, would give.
    """

    candidates: int = 0
    settled: int = 0
    pairs: int = 0
    by_vectors: int = 0
    unread_tokens: int = 0
    unread_documents: int = 0
    comparisons: int = 0
    unread_compared: int = 0
    exact: bool = True

    def __add__(self, other: Work) -> Work:
        """The work of two queries, or of two stages."""
        return Work(
            self.candidates + other.candidates,
            self.settled + other.settled,
            self.pairs + other.pairs,
            self.by_vectors + other.by_vectors,
            self.unread_tokens + other.unread_tokens,
            self.unread_documents + other.unread_documents,
            self.comparisons + other.comparisons,
            self.unread_compared + other.unread_compared,
            self.exact and other.exact,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits, best first, and the work that they took."""

    hits: tuple[Hit, ...]
    work: Work
