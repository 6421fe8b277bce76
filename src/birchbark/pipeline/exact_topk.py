"""How are the best candidates found without scoring candidates that cannot be among them?

Each document has an upper bound: its weighted first-stage score plus the highest evidence that its
segments could have with scores in [0, 1]. Documents are scored in descending order of their bounds,
until no unscored document can be among the `top` best. The result has the same documents, order and
scores as if all candidates had been scored.

With an embedding as second scorer, the embedding's evidence is computed for all candidates first
and is part of their bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import numpy as np

from birchbark.combine.aggregate import aggregate
from birchbark.combine.topk import TopK
from birchbark.errors import InputError
from birchbark.pipeline.answer import Evidence, Hit, SearchStats
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.read_documents import DocumentReader, EncodedDocument
from birchbark.pipeline.score_segments import SegmentScoring
from birchbark.records import Document, Float32s, Ranking, Segment
from birchbark.retrieve.engine import DocumentStore
from birchbark.score.scorer import Scorer

RESCORED_SEGMENTS = 5  # per document, at most
ROUNDING = 1e-9  # bounds are raised by this share: more than the rounding error of float64 sums
LOOKAHEAD = 2  # documents scored together, although the first may make the second unnecessary


class DocumentReaders:
    """A ranker with one document reader per scorer, over one store; shared by many queries."""

    def __init__(self, store: DocumentStore, ranker: Ranker) -> None:
        self.ranker = ranker

        def reader(scorer: Scorer) -> DocumentReader:
            return DocumentReader(store, scorer, ranker.segmenter, ranker.limit)

        self.main = reader(ranker.scorer)
        self.embedding = reader(ranker.embedding) if ranker.embedding else None
        self.precise = reader(ranker.precise) if ranker.precise else None

    def with_ranker(self, ranker: Ranker) -> DocumentReaders:
        """Return the same readers with a ranker that scores segments in the same way.

        Raises InputError for a ranker with another `scoring_key`.
        """
        if self.ranker.scoring_key != ranker.scoring_key:
            raise InputError("the ranker has other scorers, segments or limits than the readers")
        other = copy(self)
        other.ranker = ranker
        return other


class TopKScoring:
    """Scores the candidates of one query until the best are certain."""

    def __init__(self, readers: DocumentReaders, query: str, candidates: Ranking, top: int) -> None:
        """top: the number of best documents to find; all are scored if it is len(candidates).

        Raises InputError if the query is too long for one of the ranker's scorers.
        """
        ranker = self._ranker = readers.ranker
        self._doc_ids = candidates.doc_ids
        self._top = min(top, len(candidates))
        self._evidence_weight = ranker.interpolation.evidence_weight * (1 - ranker.embedding_share)
        self._first_stage = ranker.interpolation.weighted_first_stage(candidates.scores)  # (n,)
        self._embedding_part = np.zeros(len(candidates))
        self._scoring = SegmentScoring(readers.main, query)
        self._embedding = SegmentScoring(readers.embedding, query) if readers.embedding else None
        self._precise = SegmentScoring(readers.precise, query) if readers.precise else None
        self._store = readers.main
        self._max_evidence = np.full(len(candidates), ranker.max_evidence())
        k = max(self._top, ranker.rescore_depth) if ranker.precise else self._top
        self._topk = TopK(self._doc_ids, [np.inf] * len(candidates), k)
        self._exact = False
        self._scores: dict[int, Float32s] = {}  # position → scores (n,) or vectors of the segments
        self._truncated: dict[int, int] = {}  # position → number of truncated tokens
        self._by_vectors = 0

    def run(
        self, deadline: Deadline | None = None, on_progress: Callable[[], object] = lambda: None
    ) -> None:
        """Score documents until the `top` best are certain or the time is up.

        on_progress: called whenever documents were scored, by the embedding or the main scorer.
        """
        deadline = deadline or Deadline(None)
        if self._embedding and not self._score_by_embedding(self._embedding, deadline, on_progress):
            return
        for position in range(len(self._doc_ids)):
            self._topk.lower_bound(position, self._bound(position))
        for position, scores in enumerate(self._scoring.vector_scores(self._doc_ids)):
            if scores is not None:
                self._by_vectors += 1
                self._set_scores(position, scores)
        self._exact = self._score_contenders(deadline, on_progress)
        if self._exact and self._precise:  # lower scores may admit other documents
            self._exact = self._rescore(self._precise, deadline) and self._score_contenders(
                deadline, on_progress
            )

    def best(self) -> Ranking:
        """Return the `top` best of the documents scored so far, with their scores."""
        return self._topk.best(self._top)

    def hits(self, max_hits: int | None = None) -> list[Hit]:
        """Return the best documents with their evidence.

        If the time ran out, unscored documents follow in first-stage order. max_hits: the maximum
        number of hits; `top` by default.
        """
        positions = {doc_id: i for i, doc_id in enumerate(self._doc_ids)}
        count = self._top if max_hits is None else min(max_hits, self._top)
        doc_ids = self.best().doc_ids[:max_hits]
        unscored = [i for i in range(len(self._doc_ids)) if i not in self._scores]
        unscored = unscored[: count - len(doc_ids)]
        rest = self._store.documents([self._doc_ids[i] for i in unscored])
        return [
            *(
                self._hit(positions[document.doc_id], document, segments)
                for document, segments in self._scoring.segments(doc_ids)
            ),
            *(
                Hit(document, first, first, 0.0, (), scored=False)
                for document, first in zip(rest, self._first_stage[unscored].tolist(), strict=True)
            ),
        ]

    @property
    def stats(self) -> SearchStats:
        """How much has been scored so far."""
        truncated = [tokens for tokens in self._truncated.values() if tokens]
        scorings = (self._scoring, self._embedding, self._precise)
        return SearchStats(
            candidates=len(self._doc_ids),
            scored=len(self._scores),
            by_vectors=self._by_vectors,
            pairs=sum(scoring.pairs for scoring in scorings if scoring),
            truncated_tokens=sum(truncated),
            truncated_documents=len(truncated),
            exact=self._exact,
        )

    def _score_contenders(self, deadline: Deadline, on_progress: Callable[[], object]) -> bool:
        """Score documents until no other can be among the best; false if time does not suffice."""
        while contenders := self._topk.contenders():
            ahead = contenders[: max(LOOKAHEAD, self._top - len(self._scores))]
            batch = self._scoring.read_batch([self._doc_ids[i] for i in ahead], deadline)
            if self._tighten_bounds(ahead, batch) and not deadline.passed:
                continue
            scored = self._scoring.score(batch, deadline)
            if scored is None:
                return False
            for position, encoded, scores in zip(ahead, batch, scored, strict=False):
                self._truncated[position] = encoded.truncated
                self._set_scores(position, scores)
            on_progress()
        return True

    def _score_by_embedding(
        self, scoring: SegmentScoring, deadline: Deadline, on_progress: Callable[[], object]
    ) -> bool:
        """Compute all candidates' evidence by the embedding; false if time does not suffice."""
        by_position = scoring.vector_scores(self._doc_ids)
        self._by_vectors += sum(scores is not None for scores in by_position)
        unscored = [i for i, scores in enumerate(by_position) if scores is None]
        while unscored:
            batch = scoring.read_batch([self._doc_ids[i] for i in unscored], deadline)
            scored = scoring.score(batch, deadline)
            if scored is None:
                return False
            for position, scores in zip(unscored, scored, strict=False):
                by_position[position] = scores
            del unscored[: len(scored)]
            on_progress()
        weight = self._ranker.interpolation.evidence_weight * self._ranker.embedding_share
        aggregation = self._ranker.aggregation
        evidence = [aggregate(s, aggregation).evidence for s in by_position if s is not None]
        self._embedding_part = weight * np.array(evidence)
        return True

    def _rescore(self, scoring: SegmentScoring, deadline: Deadline) -> bool:
        """Rescore the top segments of the best documents; false if time does not suffice."""
        positions = {doc_id: i for i, doc_id in enumerate(self._doc_ids)}
        doc_ids = self._topk.best(self._ranker.rescore_depth).doc_ids
        best = [positions[doc_id] for doc_id in doc_ids]
        documents, selected = [], []
        for position, encoded in zip(best, self._scoring.read(doc_ids), strict=True):
            evidence = self._ranker.evidence_of(self._scores[position])
            contributions = evidence.weights * evidence.scores  # (segments,)
            top = np.argsort(-contributions, kind="stable")[:RESCORED_SEGMENTS]
            selected.append(top[contributions[top] > 0])
            documents.append(encoded.select(selected[-1]))
        rescored = scoring.score(documents, deadline)
        if rescored is None or len(rescored) < len(documents):
            return False
        for position, segments, scores in zip(best, selected, rescored, strict=True):
            self._scores[position][segments] = scores
            self._set_scores(position, self._scores[position])
        return True

    def _bound(self, position: int) -> float:
        """Return an upper bound on a document's score that allows for rounding errors."""
        evidence = 0.0  # 0 · infinity would be NaN
        if self._evidence_weight:
            evidence = self._evidence_weight * self._max_evidence[position]
        parts = np.array([self._first_stage[position], self._embedding_part[position], evidence])
        return float(parts.sum() + ROUNDING * np.abs(parts).sum())

    def _tighten_bounds(
        self, positions: Sequence[int], documents: Sequence[EncodedDocument]
    ) -> bool:
        """Lower the bounds of documents whose segments are counted; true if any bound changed."""
        lowered = False
        for position, encoded in zip(positions, documents, strict=False):
            max_evidence = self._ranker.max_evidence(len(encoded.token_ids))
            if max_evidence < self._max_evidence[position]:
                self._max_evidence[position], lowered = max_evidence, True
                self._topk.lower_bound(position, self._bound(position))
        return lowered

    def _set_scores(self, position: int, scores: Float32s) -> None:
        self._scores[position] = scores
        evidence = self._evidence_weight * self._ranker.evidence_of(scores).evidence
        score = float(self._first_stage[position] + self._embedding_part[position] + evidence)
        self._topk.set_score(position, score)

    def _hit(self, position: int, document: Document, segments: Sequence[Segment]) -> Hit:
        first_stage = float(self._first_stage[position])
        embedding = float(self._embedding_part[position])
        aggregated = self._ranker.evidence_of(self._scores[position])
        evidence = float(self._evidence_weight * aggregated.evidence)
        weights = self._evidence_weight * aggregated.weights
        contributions = [
            Evidence(segment, float(score), float(weight))
            for segment, score, weight in zip(segments, aggregated.scores, weights, strict=True)
            if weight > 0
        ]
        contributions.sort(key=lambda e: -e.weight * e.score)
        score = first_stage + embedding + evidence
        return Hit(document, score, first_stage, evidence, tuple(contributions), embedding)
