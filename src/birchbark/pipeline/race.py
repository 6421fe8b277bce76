"""How are a query's candidates ranked, scoring only documents that can be among the best?

Each document has a bound: its part of the first stage, and the highest evidence that its segments
could have with scores in [0, 1]. The best bounds are settled first, until no other document can
still be among the `top`. The result is that of scoring everything: documents, order, scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.combine.aggregate import aggregate
from birchbark.combine.topk import TopK
from birchbark.pipeline.answer import Evidence, Hit, Work
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.reading import Reader, Reading
from birchbark.records import Float32s, Query, Ranking
from birchbark.score.remembering import Known, Remembering

AHEAD = 2  # documents settled together, though the first may show that the others are not needed
CHARACTERS = 500_000  # of documents settled together, at most: what memory must hold
HURRIED_CHARACTERS = 2_000  # the same under a deadline, so that some are settled when it comes
AROUND = 4  # special tokens around a segment, at most


class Race:
    """One query's candidates while they are being settled."""

    def __init__(
        self, reader: Reader, query: Query, candidates: Ranking, ranker: Ranker, top: int
    ) -> None:
        """reader: made for `ranker`. top: how many of the best are wanted; all are settled for n.

        Raises InputError if the query is too long for the scorer.
        """
        self._reader, self._ranker, self._text = reader, ranker, query.text
        self._doc_ids, self._top = candidates.doc_ids, min(top, len(candidates))
        self._share = 1 - ranker.interpolation.first_stage_weight
        self._first = ranker.interpolation.first_stage_parts(candidates.scores)
        self._most = np.full(len(candidates), ranker.aggregation.most())
        self._topk = TopK(
            self._doc_ids, [self._bound(i) for i in range(len(candidates))], self._top
        )
        self._room = ranker.scorer.room(query.text)
        self._around = len(ranker.scorer.spans(query.text)) + AROUND
        self._scorer = Remembering(ranker.scorer, Known())
        self._scores: dict[int, Float32s] = {}
        self._unread: dict[int, int] = {}
        self._exact = False

    def run(self, deadline: Deadline | None = None) -> None:
        """Settle documents until none can be among the best that is not, or time is up."""
        deadline = deadline or Deadline(None)
        while waiting := self._topk.open():
            readings = self._next(waiting, deadline)
            if not self._tightened(readings) and not self._settle(readings, deadline):
                break
        self._exact = not self._topk.open()

    def best(self) -> Ranking:
        """The best settled documents; all of the `top` best where time sufficed."""
        return self._topk.best()

    def hits(self) -> list[Hit]:
        """The best with their evidence; then, where time ran out, others in first-stage order."""
        position = {doc_id: i for i, doc_id in enumerate(self._doc_ids)}
        best = [position[doc_id] for doc_id in self.best().doc_ids]
        waiting = [i for i in range(len(self._doc_ids)) if i not in self._scores]
        waiting = waiting[: self._top - len(best)]
        readings = self._reader.read([self._doc_ids[i] for i in best], self._room)
        documents = self._reader.documents([self._doc_ids[i] for i in waiting])
        first = self._first[waiting].tolist()
        return [
            *(self._hit(i, reading) for i, reading in zip(best, readings, strict=True)),
            *(
                Hit(document, score, score, 0.0, (), settled=False)
                for document, score in zip(documents, first, strict=True)
            ),
        ]

    @property
    def work(self) -> Work:
        """What was done so far."""
        unread = [tokens for tokens in self._unread.values() if tokens]
        return Work(
            candidates=len(self._doc_ids),
            settled=len(self._scores),
            pairs=self._scorer.scored,
            unread_tokens=sum(unread),
            unread_documents=len(unread),
            exact=self._exact,
        )

    def _next(self, waiting: Sequence[int], deadline: Deadline) -> dict[int, Reading]:
        """Position → reading of the documents to settle together."""
        together = HURRIED_CHARACTERS if deadline.exists else CHARACTERS
        positions = waiting[: max(AHEAD, self._top - len(self._scores))]
        readings: dict[int, Reading] = {}
        asked = self._reader.read([self._doc_ids[i] for i in positions], self._room)
        for position, reading in zip(positions, asked, strict=False):
            readings[position] = reading
            together -= reading.size
            if together <= 0:
                break
        return readings

    def _tightened(self, readings: dict[int, Reading]) -> bool:
        """Whether a bound fell, now that the number of segments is known."""
        fell = False
        for position, reading in readings.items():
            most = self._ranker.aggregation.most(len(reading.pieces))
            if most < self._most[position]:
                self._most[position], fell = most, True
                self._topk.lower(position, self._bound(position))
        return fell

    def _bound(self, position: int) -> float:
        """No score of this document can be higher."""
        most = self._share * self._most[position] if self._share else 0.0  # not 0 times infinity
        return float(self._first[position] + most)

    def _settle(self, readings: dict[int, Reading], deadline: Deadline) -> bool:
        """Score the segments of some documents; false where time did not suffice."""
        pieces = [piece for reading in readings.values() for piece in reading.pieces]
        lengths = np.array([len(piece) + self._around for piece in pieces])
        scores = np.empty(len(pieces), np.float32)
        waiting = np.argsort(lengths, kind="stable")
        while len(waiting):
            batch = waiting[: deadline.allows(lengths[waiting])]
            if not len(batch):
                return False
            scores[batch] = self._scorer.score(self._text, [pieces[i] for i in batch])
            deadline.scored(int(lengths[batch].sum()))
            waiting = waiting[len(batch) :]
        self._keep(readings, scores)
        return True

    def _keep(self, readings: dict[int, Reading], scores: Float32s) -> None:
        """Settle documents by the scores of their segments, one after the other."""
        begin = 0
        for position, reading in readings.items():
            own = scores[begin : begin + len(reading.pieces)].copy()
            begin += len(own)
            self._scores[position], self._unread[position] = own, reading.unread
            evidence = self._share * aggregate(own, self._ranker.aggregation.weights(own))
            self._topk.settle(position, float(self._first[position] + evidence))

    def _hit(self, position: int, reading: Reading) -> Hit:
        first, scores = float(self._first[position]), self._scores[position]
        weights = self._ranker.aggregation.weights(scores)
        evidence = float(self._share * aggregate(scores, weights))
        shares = [
            Evidence(segment, float(score), float(self._share * weight))
            for segment, score, weight in zip(reading.segments, scores, weights, strict=True)
            if weight > 0
        ]
        shares.sort(key=lambda e: -e.weight * e.score)
        return Hit(reading.document, first + evidence, first, evidence, tuple(shares))
