"""How are the best candidates found without reading candidates that cannot be among them?

Each document has an upper bound: its weighted first-stage score plus the highest evidence that its
segments could have with scores in [0, 1]. Documents are read in descending order of their bounds,
until no other document can be among the `top` best. The result has the same documents, order and
scores as if everything had been read that the ranker's reading plan asks for.

With an embedding model, its evidence is computed for all candidates first
and is part of their bounds.

Without a deadline documents are read one after another. Under a deadline they are read in rounds:
first the best segment of each of the first `top` documents, then that of the next documents, then
the second best segments. A document counts with what has been read of it. If vectors must be
computed, one segment of each of the first ten documents is read before vectors are computed for
the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from birchbark.combine.aggregate import grows
from birchbark.combine.topk import TopK
from birchbark.deadline import Deadline
from birchbark.pipeline.answers.answer import Hit, SearchStats
from birchbark.pipeline.reading.candidate_readings import Readings
from birchbark.pipeline.reading.document_scores import DocumentScores
from birchbark.pipeline.reading.embedding_evidence import EmbeddingEvidence
from birchbark.pipeline.reading.ranker_readers import RankerReaders
from birchbark.pipeline.reading.score_segments import SegmentScoring
from birchbark.pipeline.reading.select_segments import SPLITTING_SHARE, SegmentChoice
from birchbark.pipeline.settings.reading_plan import Select
from birchbark.records import Ranking, best_first
from birchbark.score.scorer import cut_text
from birchbark.segment.truncate import Limit

RESCORED_SEGMENTS = 5  # per document, at most
FIRST_PAGE = 10  # documents of which something is read before the plan is known
LOOKAHEAD = 2  # documents scored together, although the first may make the second unnecessary
LOOKAHEAD_SEGMENTS = 60  # the same where the plan reads few segments of each: in larger batches


class TopKScoring:
    """Scores the candidates of one query until the best are certain."""

    def __init__(
        self,
        readers: RankerReaders,
        query: str,
        candidates: Ranking,
        top: int,
        *,
        in_rounds: bool = True,
    ) -> None:
        """top: the number of best documents to find; all are scored if it is len(candidates).

        in_rounds: whether documents are read in rounds under a deadline. Raises InputError if the
        query is too long for one of the ranker's scorers.
        """
        ranker = self._ranker = readers.ranker
        query, self._cut_tokens = cut_text(ranker.scorer, query, ranker.query_tokens)
        self._doc_ids = candidates.doc_ids
        self._positions = {doc_id: i for i, doc_id in enumerate(self._doc_ids)}
        self._top = min(top, len(candidates))
        self._scoring = SegmentScoring(readers.main, query)
        stored, embedding = (
            SegmentScoring(reader, query) if reader else None
            for reader in (readers.embedding, readers.fast_embedding)
        )
        self._precise = SegmentScoring(readers.precise, query) if readers.precise else None
        self._choice = SegmentChoice(
            self._doc_ids,
            query,
            readers.terms,
            self._scoring,
            stored,  # as `embedding`, but knows the segments of stored vectors
            readers.token_embeddings() if ranker.plan.select is Select.TOKENS else None,
        )
        self._topk = self._nothing_scored()
        self._exact = False
        chooses = ranker.scorer.width == 1 and ranker.limit == Limit()
        segments = ranker.plan.embedded if chooses else None
        self._embedding = EmbeddingEvidence(
            ranker, self._doc_ids, stored, embedding, self._choice, segments
        )
        self._in_rounds = in_rounds and chooses
        self._counts_in_part = ranker.scorer.width == 1 and grows(ranker.aggregation)
        self._readable = set(range(len(candidates)))  # positions that the plan allows to read
        self._readings = Readings(
            *(ranker, self._doc_ids, self._scoring, self._choice),
            chooses=chooses,
            in_rounds=in_rounds,
        )
        self._scores = DocumentScores(
            ranker, candidates, self._embedding.weighted, self._readings.by_position
        )
        self._vector_scores = self._scores.vector_scores

    def run(
        self, deadline: Deadline | None = None, on_progress: Callable[[], object] = lambda: None
    ) -> None:
        """Read documents until the `top` best are certain or the time is up.

        on_progress: called whenever documents were scored, by the embedding or the main scorer.
        """
        deadline = deadline or Deadline(None)
        embedded = self._read_first_page(deadline, on_progress)
        embedded = embedded and self._embedding.compute(deadline)
        planned = self._apply_plan(deadline)
        for position, scores in enumerate(self._scoring.vector_scores(self._doc_ids)):
            if scores is not None and position in self._readable:
                self._vector_scores[position] = scores
                self._choice.count(position, len(scores))
                self._set_score(position)
        if self._ranker.embedding:
            on_progress()
        finished = self._score_contenders(deadline, on_progress)
        in_time = embedded and planned and self._choice.in_time
        self._exact = finished and in_time and not self._readings.left_out
        if self._exact and self._precise:  # lower scores may admit other documents
            self._exact = self._rescore(self._precise, deadline) and self._score_contenders(
                deadline, on_progress
            )

    def best(self) -> Ranking:
        """Return the `top` best documents, with their scores.

        Documents that the reading plan leaves out follow the others with lower scores. Without
        enough time, only documents of which something was read are returned.
        """
        best = self._topk.best(self._top)
        if not self._exact or len(best) == self._top:
            return best
        scored = set(best.doc_ids)
        rest = [doc_id for doc_id in self._prior() if doc_id not in scored]
        return best.followed_by(rest[: self._top - len(best)])

    def hits(self, max_hits: int | None = None) -> list[Hit]:
        """Return the best documents with their evidence.

        Documents of which nothing was read follow, in the order of first stage and embedding.
        max_hits: the maximum number of hits; `top` by default.
        """
        count = self._top if max_hits is None else min(max_hits, self._top)
        scored = self._topk.best(count).doc_ids
        known = set(scored)
        rest = [d for d in self._prior() if d not in known][: count - len(scored)]
        positions = [self._positions[doc_id] for doc_id in scored]
        segments = self._readings.segments(positions)
        hits = [self._scores.hit(position, *segments[position]) for position in positions]
        unread = [self._positions[doc_id] for doc_id in rest]
        documents, snippets = self._scoring.documents(rest), self._choice.snippets(unread)
        return [*hits, *map(self._scores.unread_hit, unread, documents, snippets)]

    def segment_scores(self, doc_id: str) -> list[float]:
        """Return the scores of the segments that were read of a scored document, best first."""
        return self._scores.known_scores(self._positions[doc_id])

    @property
    def stats(self) -> SearchStats:
        """How much has been scored so far."""
        readings = [reading for reading in self._readings.by_position.values() if reading.read]
        truncated = [r.encoded.truncated for r in readings if r.encoded.truncated]
        embedded = self._embedding.pairs
        scorings = (self._scoring, self._precise)
        segments, unsplit = self._choice.totals
        return SearchStats(
            candidates=len(self._doc_ids),
            scored=self._topk.scored,
            by_vectors=self._embedding.by_vectors + len(self._vector_scores),
            pairs=embedded + sum(scoring.pairs for scoring in scorings if scoring),
            embedded=embedded,
            segments=segments,
            unsplit_characters=unsplit,
            cut_query_tokens=self._cut_tokens,
            truncated_tokens=sum(truncated),
            truncated_documents=len(truncated),
            exact=self._exact,
        )

    def _nothing_scored(self) -> TopK:
        ranker = self._ranker
        k = max(self._top, ranker.rescore_depth) if ranker.precise else self._top
        return TopK(self._doc_ids, [np.inf] * len(self._doc_ids), k)

    def _rounds(self, deadline: Deadline) -> bool:
        """Whether documents are read in rounds."""
        return deadline.exists and self._in_rounds and self._counts_in_part

    def _read_first_page(self, deadline: Deadline, on_progress: Callable[[], object]) -> bool:
        """Read the best segment of the first documents before the embedding has read the others.

        The first page then has evidence at once, whatever the plan reads later.
        Nothing is read if all vectors are stored, or without a deadline. Returns false if the time
        does not suffice for the embedding to read these documents.
        """
        if not self._rounds(deadline):
            return True
        if not self._embedding.compute(deadline, FIRST_PAGE):
            return False
        if missing := set(self._embedding.missing):
            known = [i for doc_id in self._prior() if (i := self._positions[doc_id]) not in missing]
            self._read(self._readings.open(known[:FIRST_PAGE], deadline), 1, deadline)
            on_progress()
        return True

    def _prior(self) -> list[str]:
        """Return all candidates by first stage and embedding; of equals the first one first."""
        return [self._doc_ids[i] for i in best_first(self._scores.prior)]

    def _reading_order(self) -> list[int]:
        """Return the positions of all candidates in the order in which the plan admits them.

        They are ordered by first stage and embedding, but the j best by the embedding alone come
        after the 2 j best at the latest: the first stage gives its best candidate full marks, even
        if that has only the commonest of the query's words.
        """
        order = [self._positions[doc_id] for doc_id in self._prior()]
        if not self._ranker.embedding_share:
            return order
        mixed: list[int] = []
        for place, position in enumerate(best_first(self._embedding.weighted)):
            mixed += [*order[2 * place : 2 * place + 2], position]
        return list(dict.fromkeys(mixed))

    def _apply_plan(self, deadline: Deadline) -> bool:
        """Set which documents may be read, and the bounds of their scores.

        Returns false if the time does not suffice for counting segments.
        """
        plan, in_time = self._ranker.plan, True
        positions = self._reading_order()[: plan.documents]
        if plan.pairs is not None:
            enough = deadline.part(SPLITTING_SHARE)
            within, in_time = self._choice.within(positions, plan.pairs, plan.segments, enough)
            positions = within or positions[:1]
        planned, self._readable = set(positions), set(positions)
        if self._embedding.missing or not in_time:
            self._readable |= self._readings.by_position.keys()  # what was read counts
        self._topk = self._nothing_scored()
        for position in self._readable:
            self._topk.lower_bound(position, self._scores.bound(position))
            if self._readings.count(position):
                complete = self._readings.by_position[position].complete
                self._set_score(position, final=complete or position not in planned)
        return in_time

    def _score_contenders(self, deadline: Deadline, on_progress: Callable[[], object]) -> bool:
        """Read documents until no other can be among the best; false if time does not suffice."""
        rounds = self._rounds(deadline)
        segments = self._ranker.plan.segments or LOOKAHEAD_SEGMENTS
        lookahead = max(LOOKAHEAD, LOOKAHEAD_SEGMENTS // segments)
        while contenders := [i for i in self._topk.contenders() if i in self._readable]:
            if deadline.passed:
                return False
            if rounds:
                done = list(map(self._readings.count, contenders))
                ahead = [i for i, n in zip(contenders, done, strict=True) if n == min(done)]
                ahead = ahead[: max(LOOKAHEAD, self._top)]
            else:
                scored = len(self._readings.by_position.keys() | self._vector_scores.keys())
                ahead = contenders[: max(lookahead, self._top - scored)]
            if deadline.exists and not self._readings.chooses(deadline):
                long = self._readings.too_long(ahead)
                self._readable -= long
                ahead = [i for i in ahead if i not in long]
                if not ahead:
                    continue
            opened = self._readings.open(ahead, deadline)
            tightened = self._tighten_bounds(opened)
            if tightened and not rounds and not deadline.passed:
                continue  # another document may have the highest bound now
            if not self._read(opened, 1 if rounds else None, deadline):
                return False
            on_progress()
        return True

    def _read(self, positions: Sequence[int], count: int | None, deadline: Deadline) -> bool:
        """Read the next `count` segments of each document; false if time does not suffice."""
        read, in_time = self._readings.read(positions, count, deadline)
        for position in read:
            complete = self._readings.by_position[position].complete
            if complete or self._counts_in_part:
                self._set_score(position, final=complete)
        return in_time

    def _rescore(self, scoring: SegmentScoring, deadline: Deadline) -> bool:
        """Rescore the top segments of the best documents; false if time does not suffice."""
        doc_ids = self._topk.best(self._ranker.rescore_depth).doc_ids
        best = [self._positions[doc_id] for doc_id in doc_ids]
        documents, selected = [], []
        for position in best:
            evidence = self._ranker.evidence_of(self._scores.of_segments(position))
            contributions = evidence.weights * evidence.scores  # (segments,)
            top = np.array(best_first(contributions, RESCORED_SEGMENTS), np.intp)
            selected.append(top[contributions[top] > 0])
            if position in self._readings.by_position:
                encoded = self._readings.by_position[position].encoded
            else:
                (encoded,) = self._scoring.read([self._doc_ids[position]])
            documents.append(encoded.select(selected[-1]))
        rescored = scoring.score(documents, deadline)
        if rescored is None or len(rescored) < len(documents):
            return False
        for position, segments, scores in zip(best, selected, rescored, strict=True):
            self._scores.of_segments(position)[segments] = scores
            self._set_score(position)
        return True

    def _tighten_bounds(self, positions: Iterable[int]) -> bool:
        """Lower the bounds of documents whose segments are counted; true if any bound changed."""
        lowered = [i for i in positions if self._scores.tighten_bound(i)]
        for position in lowered:
            self._topk.lower_bound(position, self._scores.bound(position))
        return bool(lowered)

    def _set_score(self, position: int, *, final: bool = True) -> None:
        self._topk.set_score(position, self._scores.score(position), final=final)
