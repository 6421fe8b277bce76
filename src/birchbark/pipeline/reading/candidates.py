"""What is known of each candidate of one query: its shares, what was read of it, its score?

A candidate's score is the sum of three shares: that of the first stage, that of the embedding, and
the evidence that the main scorer finds in the segments that it reads. Scores are added up here and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from birchbark.combine.aggregate import AggregatedEvidence, aggregate
from birchbark.combine.contenders import contenders
from birchbark.errors import InputError
from birchbark.pipeline.answers.answer import Evidence, Hit, Snippet
from birchbark.pipeline.answers.answer_probability import answer_probability
from birchbark.pipeline.reading.query_scoring import DocumentReading
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Float32s, Ranking, Segment, best_first

ROUNDING = 1e-9  # bounds are raised by this share: more than the rounding error of float64 sums
UNKNOWN = -1


class Candidates:
    """The table of one query's candidates, a row for each, in the order of the ranking before.

    Attributes:
        doc_ids: Their ids (n,).
        first_stage: The weighted shares of the first stage, float64 (n,).
        embedding: The weighted evidence by the embedding, float64 (n,); 0 where it is not known.
        embedded: The embedding's scores of all segments of a document, float32 (segments,); None
            for a document that it has not read completely.
        static: The static embedding's scores of all segments of a document, float32 (segments,);
            None where they are not known, or better ones are.
        chosen: Segments of a document that were chosen to be read, best first; None before.
        readings: What the main scorer reads of a document; None before.
        readable: Whether the reading plan allows to read a document, bool (n,).
        segments: How many segments a document has, int (n,); UNKNOWN before it was split.
        unsplit: How many characters of a document were not split into segments, int (n,).
        split_in_time: Whether documents were split as far as they should be; false if time did not
            suffice for one.
        score: The score by what has been read, float64 (n,); NaN if nothing counts yet.
        final: Whether the score is that of everything that is to be read, bool (n,).
    """

    def __init__(self, ranker: Ranker, ranking: Ranking) -> None:
        """Know only the first stage's scores."""
        count = len(ranking)
        self.doc_ids = ranking.doc_ids
        self.first_stage = ranker.interpolation.weighted_first_stage(ranking.scores)
        self.embedding: NDArray[np.float64] = np.zeros(count)
        self.embedded: list[Float32s | None] = [None] * count
        self.static: list[Float32s | None] = [None] * count
        self.chosen: list[list[Segment] | None] = [None] * count
        self.readings: list[DocumentReading | None] = [None] * count
        self.readable = np.ones(count, bool)
        self.segments = np.full(count, UNKNOWN)
        self.unsplit = np.zeros(count, np.int64)
        self.split_in_time = True
        self.score = np.full(count, np.nan)
        self.final = np.zeros(count, bool)
        self._ranker = ranker
        self._max_evidence = np.full(count, ranker.max_evidence())
        weight = ranker.interpolation.evidence_weight
        self._evidence_weight = weight * (1 - ranker.embedding_share)
        self._embedding_weight = weight * ranker.embedding_share

    def __len__(self) -> int:
        return len(self.doc_ids)

    def positions(self, doc_ids: Sequence[str]) -> list[int]:
        """Return the positions of documents, in the same order."""
        positions = {doc_id: i for i, doc_id in enumerate(self.doc_ids)}
        return [positions[doc_id] for doc_id in doc_ids]

    # What is known before anything is read

    def by_prior(self) -> list[int]:
        """Return all positions by first stage and embedding; of equals the first one first."""
        return best_first((self.first_stage + self.embedding).astype(np.float32))

    def record_split(self, position: int, segments: int, unsplit: int = 0) -> None:
        """Record into how many segments a document was split, and how many characters were not.

        Later calls replace earlier ones: the embedding and the main scorer may split long segments
        at other places. 0 segments are those of a document that is too long to be read.
        """
        self.segments[position], self.unsplit[position] = segments, unsplit

    @property
    def totals(self) -> tuple[int, int]:
        """Number of segments of the documents considered, and of characters that were not split."""
        return int(self.segments[self.segments != UNKNOWN].sum()), int(self.unsplit.sum())

    def add_embedding(self, position: int, scores: Float32s) -> None:
        """Set the evidence by the embedding from its scores (n,) of segments of a document."""
        evidence = aggregate(scores, self._ranker.aggregation).evidence
        self.embedding[position] = self._embedding_weight * evidence

    def add_embedding_of_all(
        self, position: int, scores: Float32s, *, static: bool = False
    ) -> None:
        """Record the embedding's scores (n,) of all segments of a document.

        static: whether they are those of the static embedding, which are on the same scale and
        count until the embedding has read the document.
        """
        (self.static if static else self.embedded)[position] = scores
        self.record_split(position, len(scores))
        self.add_embedding(position, scores)

    @property
    def has_static(self) -> bool:
        """Whether a document's evidence is, or was, that of the static embedding."""
        return any(scores is not None for scores in self.static)

    def complete_embedding(self, position: int, read: int) -> None:
        """Make evidence from `read` segments comparable with that from all of them.

        Under a weighted sum, every document with stored vectors would otherwise rank above those
        without. A mean stays as it is.
        """
        of_read = self._ranker.max_evidence(read)
        of_all = self._ranker.max_evidence(max(read, int(self.segments[position])))
        self.embedding[position] *= of_all / of_read if of_read and np.isfinite(of_all) else 1.0

    def assume_embedding(self, positions: Sequence[int]) -> None:
        """Give documents without vectors assumed evidence, which counts if time does not suffice.

        It is as high among that of the other documents as the document is in the first stage.
        Without it, all documents with vectors would precede.
        """
        known = np.delete(self.embedding, positions)
        ranks = np.array(positions) * len(known) // len(self)
        self.embedding[positions] = -np.sort(-known)[ranks]

    def rank_chosen(self, position: int, ranks: Sequence[int], scores: Float32s) -> None:
        """Order the chosen segments of a document by the embedding's scores of some of them.

        These precede the others. ranks: for each score (n,) the rank of the chosen segment that it
        is of; of several scores of one segment the highest counts.
        """
        chosen = self.chosen[position] or []
        best = np.full(max(ranks, default=-1) + 1, -np.inf)
        np.maximum.at(best, list(ranks), scores)
        self.chosen[position] = [chosen[i] for i in best_first(best)] + chosen[len(best) :]

    # What is read

    def count_read(self, position: int) -> int:
        """Return how many segments have been read of a document."""
        reading = self.readings[position]
        return reading.read if reading else 0

    def opened(self) -> list[int]:
        """Return the positions of the documents of which something is to be read, or was."""
        return [i for i, reading in enumerate(self.readings) if reading]

    def tighten(self, positions: Sequence[int]) -> bool:
        """Limit documents' evidence by the numbers of their segments; true if a bound changed."""
        before = self._max_evidence[positions]
        limits = [self._ranker.max_evidence(len(self.reading(i).order)) for i in positions]
        self._max_evidence[positions] = np.minimum(before, limits)
        return bool((self._max_evidence[positions] < before).any())

    def reading(self, position: int) -> DocumentReading:
        """Return what is read of a document; LookupError if nothing is."""
        reading = self.readings[position]
        if reading is None:
            raise LookupError(f"nothing is read of candidate {position}")
        return reading

    # Scores

    def admit(self, positions: Sequence[int]) -> None:
        """Let these documents alone be read, and no score count that was set before."""
        self.readable[:] = False
        self.readable[positions] = True
        self.score[:], self.final[:] = np.nan, False

    def set_score(self, position: int, *, final: bool = True) -> None:
        """Set a document's score by what has been read of it; InputError if it is not finite.

        final: false if more of the document is to be read.
        """
        evidence = self._evidence_weight * self._evidence(position).evidence
        score = float(self.first_stage[position] + self.embedding[position] + evidence)
        if not np.isfinite(score):
            raise InputError(f"score of document {self.doc_ids[position]} is not a finite number")
        self.score[position], self.final[position] = score, final

    def contenders(self, k: int) -> list[int]:
        """Return the readable documents that can still be among the k best, by their bounds."""
        return contenders(self._bounds(), self.score, self.final, self.readable, k)

    @property
    def scored(self) -> int:
        """Number of documents with a score."""
        return len(self) - int(np.isnan(self.score).sum())

    def best(self, count: int) -> Ranking:
        """Return the `count` best of the documents that have a score."""
        scored = np.flatnonzero(~np.isnan(self.score)).tolist()
        return Ranking.of([self.doc_ids[i] for i in scored], self.score[scored], count)

    def known_scores(self, position: int) -> list[float]:
        """Return the scores of the segments that have been read, best first, without their weights.

        For a model that scores whole documents, return the document's score.
        """
        if self._ranker.scorer.width > 1:
            return [self._evidence(position).evidence]
        return [float(x) for x in np.sort(self.reading(position).known_scores)[::-1]]

    def contributions(self, position: int) -> NDArray[np.float64]:
        """Return what each segment (n,) contributes to the evidence, in document order."""
        evidence = self._ranker.evidence_of(self.reading(position).scores)
        return evidence.weights * evidence.scores

    # Hits

    def hit(self, position: int, document: Document, segments: Sequence[Segment]) -> Hit:
        """Return the hit of a document with the evidence from what has been read of it.

        segments: those that have been read, in the order of their scores.
        """
        aggregated = self._evidence(position)
        evidence = float(self._evidence_weight * aggregated.evidence)
        weights = self._evidence_weight * aggregated.weights
        contributions = [
            Evidence(segments[i], float(aggregated.scores[i]), float(weights[i]))
            for i in np.flatnonzero(weights > 0).tolist()
        ]
        contributions.sort(key=lambda e: -e.weight * e.score)
        first_stage, embedding = float(self.first_stage[position]), float(self.embedding[position])
        score = first_stage + embedding + evidence
        probability = self._probability(position, aggregated)
        return Hit(
            document,
            score,
            first_stage,
            evidence,
            tuple(contributions),
            embedding,
            probability=probability,
        )

    def _probability(self, position: int, evidence: AggregatedEvidence) -> float | None:
        """Return the probability that a document answers the query; None if it is not known."""
        known = self._embedding_weight and len(evidence.scores)
        if not known or not self._ranker.has_stated_scales:
            return None
        by_embedding = float(self.embedding[position]) / self._embedding_weight
        return answer_probability(float(evidence.scores.max()), by_embedding)

    def unread_hit(self, position: int, document: Document, snippet: Snippet | None) -> Hit:
        """Return the hit of a document of which the main scorer has read nothing."""
        first_stage, embedding = float(self.first_stage[position]), float(self.embedding[position])
        score = first_stage + embedding
        return Hit(document, score, first_stage, 0.0, (), embedding, scored=False, snippet=snippet)

    def _evidence(self, position: int) -> AggregatedEvidence:
        """Return the evidence from what has been read of a document."""
        reading = self.reading(position)
        return self._ranker.evidence_of(reading.known_scores, len(reading.order) - reading.read)

    def _bounds(self) -> NDArray[np.float64]:
        """Return upper bounds (n,) on the scores that allow for rounding errors."""
        evidence: NDArray[np.float64] = np.zeros(len(self))  # 0 · infinity would be NaN
        if self._evidence_weight:
            evidence = self._evidence_weight * self._max_evidence
        total = self.first_stage + self.embedding + evidence
        absolute = np.abs(self.first_stage) + np.abs(self.embedding) + np.abs(evidence)
        return np.asarray(total + ROUNDING * absolute)
