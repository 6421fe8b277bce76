"""How are a query's candidates ranked, scoring only documents that can be among the best?

Each document has a bound: its part of the first stage, and the highest evidence that its segments
could have with scores in [0, 1]. The best bounds are settled first, until no other document can
still be among the `top`. The result is that of scoring everything: documents, order, scores.

Where a ranker has two scorers, the embedding's evidence is found for all candidates first, and is a
part of the bounds of the race that the cross-encoder runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import numpy as np

from birchbark.combine.aggregate import judged
from birchbark.combine.topk import TopK
from birchbark.errors import InputError
from birchbark.pipeline.answer import Evidence, Hit, Work
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.reading import Reader, Reading
from birchbark.pipeline.scoring import Scoring
from birchbark.records import Document, Float32s, Query, Ranking, Segment
from birchbark.retrieve.engine import DocumentStore
from birchbark.score.scorer import Scorer

COUNTING = 5  # segments of a document that are read again, at most
ROUNDING = 1e-9  # bounds are raised by this share: more than sums in float64 can be off
AHEAD = 2  # documents settled together, though the first may show that the other is not needed


class Readers:
    """A ranker and its readers of one store, to be shared by many queries."""

    def __init__(self, store: DocumentStore, ranker: Ranker) -> None:
        self.ranker = ranker

        def reader(scorer: Scorer) -> Reader:
            return Reader(store, scorer, ranker.segmenter, ranker.limit)

        self.main = reader(ranker.scorer)
        self.embedding = reader(ranker.embedding) if ranker.embedding else None
        self.precise = reader(ranker.precise) if ranker.precise else None

    def weighed(self, ranker: Ranker) -> Readers:
        """The same readers for a ranker that reads alike: depth and weights may differ."""
        if self.ranker.reads != ranker.reads:
            raise InputError("this ranker reads otherwise than the one that readers were made for")
        other = copy(self)
        other.ranker = ranker
        return other


class Race:
    """One query's candidates while they are being settled."""

    def __init__(self, readers: Readers, query: Query, candidates: Ranking, top: int) -> None:
        """top: how many of the best are wanted; all are settled for n.

        Raises InputError if the query is too long for the scorer.
        """
        self._ranker, self._doc_ids = readers.ranker, candidates.doc_ids
        ranker = readers.ranker
        self._top = min(top, len(candidates))
        self._share = ranker.interpolation.evidence_weight * (1 - ranker.embedding_share)
        self._first = ranker.interpolation.first_stage_parts(candidates.scores)
        self._similar = np.zeros(len(candidates))
        self._scoring = Scoring(readers.main, query.text)
        self._other = Scoring(readers.embedding, query.text) if readers.embedding else None
        self._precise = Scoring(readers.precise, query.text) if readers.precise else None
        self._store = readers.main
        self._most = np.full(len(candidates), ranker.most())
        reach = max(self._top, ranker.reread) if ranker.precise else self._top
        self._topk = TopK(self._doc_ids, [np.inf] * len(candidates), reach)
        self._exact = False
        self._scores: dict[int, Float32s] = {}
        self._unread: dict[int, int] = {}
        self._by_vectors = 0

    def run(
        self, deadline: Deadline | None = None, watch: Callable[[], object] = lambda: None
    ) -> None:
        """Settle documents until none can be among the best that is not, or time is up.

        watch: called whenever some were settled, or compared by the embedding.
        """
        deadline = deadline or Deadline(None)
        if self._other and not self._compare(self._other, deadline, watch):
            return
        for position in range(len(self._doc_ids)):
            self._topk.lower(position, self._bound(position))
        for position, scores in enumerate(self._scoring.known(self._doc_ids)):
            if scores is not None:
                self._by_vectors += 1
                self._settle(position, scores)
        self._exact = self._settle_open(deadline, watch)
        if self._exact and self._precise:  # scores that fall let others in
            self._exact = self._reread(self._precise, deadline) and self._settle_open(
                deadline, watch
            )

    def best(self) -> Ranking:
        """The best settled documents; all of the `top` best where time sufficed."""
        return self._topk.best(self._top)

    def hits(self, most: int | None = None) -> list[Hit]:
        """The best with their evidence; then, where time ran out, others in first-stage order.

        most: so many of them; all of the `top` by default.
        """
        place = {doc_id: i for i, doc_id in enumerate(self._doc_ids)}
        doc_ids = self.best().doc_ids[:most]
        waiting = [i for i in range(len(self._doc_ids)) if i not in self._scores]
        waiting = waiting[: (self._top if most is None else min(most, self._top)) - len(doc_ids)]
        left = self._store.documents([self._doc_ids[i] for i in waiting])
        return [
            *(
                self._hit(place[document.doc_id], document, segments)
                for document, segments in self._scoring.shown(doc_ids)
            ),
            *(
                Hit(document, float(self._first[i]), float(self._first[i]), 0.0, (), settled=False)
                for i, document in zip(waiting, left, strict=True)
            ),
        ]

    @property
    def work(self) -> Work:
        """What was done so far."""
        unread = [tokens for tokens in self._unread.values() if tokens]
        return Work(
            candidates=len(self._doc_ids),
            settled=len(self._scores),
            by_vectors=self._by_vectors,
            pairs=sum(s.pairs for s in (self._scoring, self._other, self._precise) if s),
            unread_tokens=sum(unread),
            unread_documents=len(unread),
            exact=self._exact,
        )

    def _settle_open(self, deadline: Deadline, watch: Callable[[], object]) -> bool:
        """Settle all that can be among the best; false where time did not suffice."""
        while waiting := self._topk.open():
            ahead = waiting[: max(AHEAD, self._top - len(self._scores))]
            readings = self._scoring.read([self._doc_ids[i] for i in ahead], deadline)
            if self._tightened(ahead, readings) and not deadline.passed:
                continue
            found = self._scoring.score(readings, deadline)
            if found is None:
                return False
            for position, reading, scores in zip(ahead, readings, found, strict=False):
                self._unread[position] = reading.unread
                self._settle(position, scores)
            watch()
        return True

    def _compare(self, scoring: Scoring, deadline: Deadline, watch: Callable[[], object]) -> bool:
        """Find the embedding's evidence for all candidates; false where time did not suffice."""
        known = scoring.known(self._doc_ids)
        self._by_vectors += sum(scores is not None for scores in known)
        waiting = [i for i, scores in enumerate(known) if scores is None]
        while waiting:
            readings = scoring.read([self._doc_ids[i] for i in waiting], deadline)
            found = scoring.score(readings, deadline)
            if found is None:
                return False
            for position, scores in zip(waiting, found, strict=False):
                known[position] = scores
            del waiting[: len(found)]
            watch()
        share = self._ranker.interpolation.evidence_weight * self._ranker.embedding_share
        how = self._ranker.aggregation
        evidence = [judged(scores, how).evidence for scores in known if scores is not None]
        self._similar = share * np.array(evidence)
        return True

    def _reread(self, scoring: Scoring, deadline: Deadline) -> bool:
        """Score anew what counts most in the best documents; false where time did not suffice."""
        place = {doc_id: i for i, doc_id in enumerate(self._doc_ids)}
        best = [place[doc_id] for doc_id in self._topk.best(self._ranker.reread).doc_ids]
        readings, counting = [], []
        for position, reading in zip(
            best, self._scoring.all([self._doc_ids[i] for i in best]), strict=True
        ):
            whole = self._ranker.judge(self._scores[position])
            shares = whole.weights * whole.scores
            most = np.argsort(-shares, kind="stable")[:COUNTING]
            counting.append(most[shares[most] > 0])
            readings.append(reading.only(counting[-1]))
        found = scoring.score(readings, deadline)
        if found is None or len(found) < len(readings):
            return False
        for position, at, scores in zip(best, counting, found, strict=True):
            self._scores[position][at] = scores
            self._settle(position, self._scores[position])
        return True

    def _bound(self, position: int) -> float:
        """No score of this document can be higher, whichever way sums are rounded."""
        most = self._share * self._most[position] if self._share else 0.0  # not 0 times infinity
        parts = np.array([self._first[position], self._similar[position], most])
        return float(parts.sum() + ROUNDING * np.abs(parts).sum())

    def _tightened(self, positions: Sequence[int], readings: Sequence[Reading]) -> bool:
        """Whether a bound fell, now that the number of segments is known."""
        fell = False
        for position, reading in zip(positions, readings, strict=False):
            most = self._ranker.most(len(reading.pieces))
            if most < self._most[position]:
                self._most[position], fell = most, True
                self._topk.lower(position, self._bound(position))
        return fell

    def _settle(self, position: int, scores: Float32s) -> None:
        self._scores[position] = scores
        evidence = self._share * self._ranker.judge(scores).evidence
        self._topk.settle(
            position, float(self._first[position] + self._similar[position] + evidence)
        )

    def _hit(self, position: int, document: Document, segments: Sequence[Segment]) -> Hit:
        first, similar = float(self._first[position]), float(self._similar[position])
        whole = self._ranker.judge(self._scores[position])
        evidence = float(self._share * whole.evidence)
        shares = [
            Evidence(segment, float(score), float(weight))
            for segment, score, weight in zip(
                segments, whole.scores, self._share * whole.weights, strict=True
            )
            if weight > 0
        ]
        shares.sort(key=lambda e: -e.weight * e.score)
        score = first + similar + evidence
        return Hit(document, score, first, evidence, tuple(shares), similar)
