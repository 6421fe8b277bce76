"""What evidence does the embedding find in each candidate, from stored vectors or by reading it?

Stored vectors are those of all segments of a document. Of documents without vectors the embedding
reads as many segments as the reading plan says. Where an index has vectors of some documents only,
the evidence of the others is made comparable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from birchbark.combine.aggregate import aggregate
from birchbark.deadline import Deadline
from birchbark.pipeline.reading.score_segments import SegmentScoring
from birchbark.pipeline.reading.select_segments import SegmentChoice
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Float32s

TIME_SHARE = 0.5  # at most, if vectors must be computed
DEADLINE_DOCUMENTS = 10  # read at once under a deadline


class EmbeddingEvidence:
    """The weighted evidence of the embedding for the candidates of one query."""

    def __init__(
        self,
        ranker: Ranker,
        doc_ids: Sequence[str],
        stored: SegmentScoring | None,
        scoring: SegmentScoring | None,
        choice: SegmentChoice,
        segments: int | None,
    ) -> None:
        """Compute nothing yet.

        stored, scoring: compare stored vectors, and read documents without; None if the ranker has
        no embedding. choice: chooses what is read, and is told the scores. segments: how many are
        read of a document without vectors; None for all. Attribute weighted: weight · evidence of
        each candidate (n,), 0 where it is not known.
        """
        self.weighted: NDArray[np.float64] = np.zeros(len(doc_ids))
        self.by_vectors = 0  # number of documents with stored vectors
        self._ranker, self._doc_ids = ranker, doc_ids
        self._stored, self._scoring = stored, scoring
        self._choice, self._segments = choice, segments
        self._missing: list[int] | None = None  # positions; None before vectors were used
        self._reads_all = True  # whether no document is too long to be read before the deadline

    @property
    def pairs(self) -> int:
        """Number of segments read so far."""
        return self._scoring.pairs if self._scoring else 0

    @property
    def missing(self) -> Sequence[int]:
        """The positions of documents without vectors that were not read yet."""
        return self._missing or ()

    def compute(self, deadline: Deadline, documents: int | None = None) -> bool:
        """Compute the evidence of candidates; false if time does not suffice.

        documents: how many of the documents without vectors are read now; None for all.
        """
        if not (self._stored and self._scoring):
            return True
        if self._missing is None:
            self._missing = self._use_vectors(self._stored)
            if self._missing and self.by_vectors:
                self._assume(self._missing)
            if deadline.exists and self._segments is None:
                short = self._choice.without_long(self._missing)
                self._reads_all = len(short) == len(self._missing)
                self._missing = short
        deadline = deadline.part(TIME_SHARE)
        remaining = 0 if documents is None else max(0, len(self._missing) - documents)
        while len(self._missing) > remaining:
            ahead = self._missing[: len(self._missing) - remaining]
            read = self._read(self._scoring, ahead, deadline)
            if not read:
                return False
            if self.by_vectors:
                for position, scores in read.items():
                    self.weighted[position] *= self._factor(position, len(scores))
            del self._missing[: len(read)]
        return self._reads_all

    def _use_vectors(self, scoring: SegmentScoring) -> list[int]:
        """Set the evidence of documents with stored vectors; return the positions of the others."""
        missing = []
        for position, scores in enumerate(scoring.vector_scores(self._doc_ids)):
            if scores is None:
                missing.append(position)
            else:
                self.by_vectors += 1
                self._choice.add_embedded(position, scores)
                self._set(position, scores)
        return missing

    def _read(
        self, scoring: SegmentScoring, positions: Sequence[int], deadline: Deadline
    ) -> dict[int, Float32s]:
        """Read as many of the first documents as should be read together, or as time allows.

        Returns the scores (segments,) of each; none if time does not suffice for one document.
        """
        if self._segments is None:
            batch = scoring.read_batch([self._doc_ids[i] for i in positions], deadline)
            read = dict(zip(positions, scoring.score(batch, deadline) or (), strict=False))
            for position, scores in read.items():
                self._choice.add_embedded(position, scores)
        else:
            ahead = positions[:DEADLINE_DOCUMENTS] if deadline.exists else positions
            chosen = self._choice.to_embed(
                ahead, self._segments, self._ranker.plan.segments or 0, deadline
            )
            scored = scoring.score([one.encoded for one in chosen], deadline)
            read = dict(zip(positions, scored or (), strict=False))
            for one, (position, scores) in zip(chosen, read.items(), strict=False):
                self._choice.add_partly_embedded(position, one, scores)
        for position, scores in read.items():
            self._set(position, scores)
        return read

    def _set(self, position: int, scores: Float32s) -> None:
        weight = self._ranker.interpolation.evidence_weight * self._ranker.embedding_share
        evidence = aggregate(scores, self._ranker.aggregation).evidence
        self.weighted[position] = weight * evidence

    def _assume(self, missing: Sequence[int]) -> None:
        """Give documents without vectors assumed evidence, which counts if time does not suffice.

        It is as high among that of the other documents as the document is in the first stage.
        Without it, all documents with vectors would precede.
        """
        known = np.delete(self.weighted, missing)
        descending = -np.sort(-known)
        ranks = np.array(missing) * len(known) // len(self._doc_ids)
        self.weighted[missing] = descending[ranks]

    def _factor(self, position: int, read: int) -> float:
        """Return the factor that makes evidence from `read` segments comparable with that from all.

        Otherwise every document with stored vectors would rank above those without.
        """
        of_read = self._ranker.max_evidence(read)
        of_all = self._ranker.max_evidence(max(read, self._choice.segments_of(position)))
        return of_all / of_read if of_read and np.isfinite(of_all) else 1.0
