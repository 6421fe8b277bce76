"""What is known of each candidate's score: its parts, its bound, and the hit that shows it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from birchbark.combine.aggregate import AggregatedEvidence
from birchbark.pipeline.answers.answer import Evidence, Hit, Snippet
from birchbark.pipeline.reading.document_reading import Reading
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Float32s, Ranking, Segment

ROUNDING = 1e-9  # bounds are raised by this share: more than the rounding error of float64 sums


class DocumentScores:
    """The scores of one query's candidates, by their positions in the ranking before.

    Attributes:
        vector_scores: The scores (n,) of a document's segments by stored vectors.
    """

    def __init__(
        self,
        ranker: Ranker,
        candidates: Ranking,
        embedding: NDArray[np.float64],
        readings: Mapping[int, Reading],
    ) -> None:
        """Both `embedding` and `readings` may change later.

        embedding: its weighted evidence (n,). readings: what the main scorer reads.
        """
        self._readings = readings
        self.vector_scores: dict[int, Float32s] = {}
        self._ranker, self._embedding = ranker, embedding
        self._first_stage = ranker.interpolation.weighted_first_stage(candidates.scores)  # (n,)
        self._evidence_weight = ranker.interpolation.evidence_weight * (1 - ranker.embedding_share)
        self._max_evidence = np.full(len(candidates), ranker.max_evidence())

    @property
    def prior(self) -> Float32s:
        """The scores by first stage and embedding, (n,)."""
        return (self._first_stage + self._embedding).astype(np.float32)

    def of_segments(self, position: int) -> Float32s:
        """Return the scores (n,) of the segments of a document that has been read."""
        if position in self._readings:
            return self._readings[position].scores
        return self.vector_scores[position]

    def score(self, position: int) -> float:
        """Return a document's score by what has been read of it."""
        evidence = self._evidence_weight * self._evidence(position).evidence
        return float(self._first_stage[position] + self._embedding[position] + evidence)

    def bound(self, position: int) -> float:
        """Return an upper bound on a document's score that allows for rounding errors."""
        evidence = 0.0  # 0 · infinity would be NaN
        if self._evidence_weight:
            evidence = self._evidence_weight * self._max_evidence[position]
        parts = np.array([self._first_stage[position], self._embedding[position], evidence])
        return float(parts.sum() + ROUNDING * np.abs(parts).sum())

    def tighten_bound(self, position: int) -> bool:
        """Limit a document's evidence by the number of its segments; true if the bound changed."""
        max_evidence = self._ranker.max_evidence(len(self._readings[position].order))
        tightened = max_evidence < self._max_evidence[position]
        if tightened:
            self._max_evidence[position] = max_evidence
        return bool(tightened)

    def hit(self, position: int, document: Document, segments: Sequence[Segment]) -> Hit:
        """Return the hit of a document with the evidence from what has been read of it.

        segments: those that have been read, in the order of their scores.
        """
        first_stage = float(self._first_stage[position])
        embedding = float(self._embedding[position])
        aggregated = self._evidence(position)
        evidence = float(self._evidence_weight * aggregated.evidence)
        weights = self._evidence_weight * aggregated.weights
        contributions = [
            Evidence(segments[i], float(aggregated.scores[i]), float(weights[i]))
            for i in np.flatnonzero(weights > 0).tolist()
        ]
        contributions.sort(key=lambda e: -e.weight * e.score)
        score = first_stage + embedding + evidence
        return Hit(document, score, first_stage, evidence, tuple(contributions), embedding)

    def unread_hit(self, position: int, document: Document, snippet: Snippet | None) -> Hit:
        """Return the hit of a document of which the main scorer has read nothing."""
        first_stage = float(self._first_stage[position])
        embedding = float(self._embedding[position])
        return Hit(
            document,
            first_stage + embedding,
            first_stage,
            0.0,
            (),
            embedding,
            scored=False,
            snippet=snippet,
        )

    def known_scores(self, position: int) -> list[float]:
        """Return the scores of the segments that have been read, best first, without their weights.

        For a model that scores whole documents, return the document's score.
        """
        if self._ranker.scorer.width > 1:
            return [self._evidence(position).evidence]
        return [float(score) for score in np.sort(self._read(position))[::-1]]

    def _evidence(self, position: int) -> AggregatedEvidence:
        """Return the evidence from what has been read of a document."""
        return self._ranker.evidence_of(self._read(position))

    def _read(self, position: int) -> Float32s:
        """Return the scores (n,), or vectors (n, width), of what has been read of a document."""
        reading = self._readings.get(position)
        if reading is None or reading.complete:
            return self.of_segments(position)
        return reading.scores[reading.known]
