"""What does a search return? Hits with their evidence, and how much was scored to find them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from birchbark.records import Document, Segment


@dataclass(frozen=True, slots=True)
class Evidence:
    """The contribution of one segment to its document's score: weight · score.

    Attributes:
        segment: The segment.
        score: Its score, a probability of relevance from 0 to 1 for most models.
        weight: Its weight, with the factor (1 − a) · (1 − e) of `Ranker` included. The
            contributions of all segments of a hit therefore add up to `Hit.evidence`.
        marks: Start and end in `segment.text` of each word that is a term of the query. Defaults to
            `()`; a search sets it for the first 20 segments of a hit.
        sentence: Start and end in `segment.text` of the sentence that is shown: of the best segment
            of the first five hits that with the highest score by the model, among the three with
            most terms of the query; of others that with most terms. A question or heading has the
            sentence after it. Defaults to None: the segment is one sentence, or was not searched
            for it; a search does so where it sets `marks`.
    """

    segment: Segment
    score: float
    weight: float
    marks: tuple[tuple[int, int], ...] = ()
    sentence: tuple[int, int] | None = None

    @property
    def shown(self) -> tuple[int, int]:
        """Start and end in `segment.text` of what is shown.

        This is the sentence, or else the segment's own text, without a title that precedes it.
        """
        size = len(self.segment.text)
        own = max(0, size - (self.segment.end - self.segment.start))
        return self.sentence or (own, size)

    @property
    def text(self) -> str:
        """The text that is shown; see `shown`."""
        return self.segment.text[slice(*self.shown)]

    @property
    def begin(self) -> int:
        """Where the sentence, or a segment without one, begins in the document's contents."""
        if self.sentence is None:
            return self.segment.start
        return self.segment.end - len(self.segment.text) + self.sentence[0]


@dataclass(frozen=True, slots=True)
class Snippet:
    """The segment of a document that is shown before a model has read any of it.

    Attributes:
        segment: The segment.
        marks: Start and end in `segment.text` of each word that is a term of the query.
    """

    segment: Segment
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked document and the parts of its score: score = first_stage + embedding + evidence.

    Attributes:
        document: The document.
        score: The sum of the three parts below.
        first_stage: a · s_doc, the weighted and scaled score of the first stage or of the stage
            before; for a document below the depth, which no stage scored, scaled as the candidates
            are; without a ranker, the score of the first stage itself.
        evidence: Σ weight · score over the segments.
        segments: The segments with a weight above 0, largest contribution first.
        embedding: The weighted evidence by the ranker's embedding model. Defaults to 0.
        scored: False if the scorer read nothing of the document, because of the depth, the reading
            plan or the time; such a hit has no evidence. Defaults to True.
        compared: The document's score from pairwise comparisons. Compared documents rank above
            all others, by this score. None (the default) if the document was not compared.
        snippet: For a hit without evidence, the segment that fits the query best by the embedding
            or by its terms; None if the document has no text. Defaults to None.
        probability: That the document answers the query, from 0 to 1. None (the default) if the
            scorer has read nothing of it, or is not a cross-encoder with an embedding beside it.
        copies: Ids of documents that are equal but for where they are, and would follow as hits.
            Defaults to ().
        stage: The number of the re-ranking stage that the score is from, beginning at 1; 0 (the
            default) if it is the first stage's. Hits of a later stage come before those of an
            earlier one, whatever their scores: the two are not on one scale.
    """

    document: Document
    score: float
    first_stage: float
    evidence: float
    segments: tuple[Evidence, ...]
    embedding: float = 0.0
    scored: bool = True
    compared: float | None = None
    snippet: Snippet | None = None
    probability: float | None = None
    copies: tuple[str, ...] = ()
    stage: int = 0


@dataclass(frozen=True, slots=True)
class SearchStats:
    """How much was scored for one query; with several stages, the sums over the stages.

    Attributes:
        candidates: Number of candidates, down to the depth; a document counts once for each stage.
        scored: Number of candidates with a known score.
        pairs: Number of distinct query–segment pairs scored by a model or found in a cache; without
            the sentences that are scored to mark the best one of a passage.
        embedded: Number of these pairs that the embedding scored, without stored vectors.
        segments: Number of segments that the documents have of which any was considered. For a
            document that was not split completely, those that it was split into.
        unsplit_characters: Number of characters of these documents that were not split into
            segments, because the document is very long or because time ran out.
        by_vectors: Number of documents scored by vectors stored in the index; a document counts
            once for each scorer.
        truncated_tokens: Number of tokens of scored documents that `Ranker.limit` left out.
        truncated_documents: Number of documents with such tokens.
        cut_query_tokens: Number of tokens of the query that were not read, because of
            `Ranker.query_tokens`.
        comparisons: Number of pairwise comparisons.
        truncated_compared: Number of tokens of compared segments that did not fit into an input
            for two texts.
        missing_shards: The names of the shards of the index that did not answer in time.
        exact: Whether the answer equals that of a search without a time budget: everything was read
            that the reading plan asks for and that can change the best documents, and all requested
            comparisons were made. Which sentence of a passage is marked may still differ.
    """

    candidates: int = 0
    scored: int = 0
    pairs: int = 0
    embedded: int = 0
    segments: int = 0
    unsplit_characters: int = 0
    by_vectors: int = 0
    truncated_tokens: int = 0
    truncated_documents: int = 0
    cut_query_tokens: int = 0
    comparisons: int = 0
    truncated_compared: int = 0
    missing_shards: tuple[str, ...] = ()
    exact: bool = True

    def __add__(self, other: SearchStats) -> SearchStats:
        """Add the counts of two queries or two stages; the sum is exact if both are."""
        names = [f.name for f in fields(self) if f.name not in ("exact", "missing_shards")]
        counts = {name: getattr(self, name) + getattr(other, name) for name in names}
        missing = tuple(sorted({*self.missing_shards, *other.missing_shards}))
        return SearchStats(**counts, missing_shards=missing, exact=self.exact and other.exact)

    @classmethod
    def of_stages(cls, stages: Iterable[SearchStats]) -> SearchStats:
        """Add the counts of all stages of one query, whose tokens that were cut count once."""
        listed = list(stages)
        cut = max((stats.cut_query_tokens for stats in listed), default=0)
        return replace(sum(listed, cls()), cut_query_tokens=cut)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one search.

    Attributes:
        hits: The hits, best first.
        stats: How much was scored to find them.
    """

    hits: tuple[Hit, ...]
    stats: SearchStats

    def above(self, probability: float) -> Answer:
        """Return this answer without hits that are less probable, or whose probability is unknown.

        Args:
            probability: That a document answers the query, from 0 to 1.
        """
        hits = tuple(
            hit
            for hit in self.hits
            if hit.probability is not None and hit.probability >= probability
        )
        return replace(self, hits=hits)

    def as_inexact(self) -> Answer:
        """Return this answer as one that another might improve."""
        return Answer(self.hits, replace(self.stats, exact=False))

    def without_shards(self, names: Iterable[str]) -> Answer:
        """Return this answer as one in which these shards' documents may be missing."""
        if not (missing := tuple(sorted({*names}))):
            return self
        return Answer(self.hits, replace(self.stats, missing_shards=missing, exact=False))

    def as_unscored(self) -> Answer:
        """Return this answer of a first stage as one that no scorer had the time to improve."""
        hits = tuple(replace(hit, scored=False) for hit in self.hits)
        return Answer(hits, self.stats).as_inexact()
