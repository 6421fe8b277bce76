"""Which segments of each candidate are read for a query, and in which order?

Segments are chosen by the embedding's scores where there are any, otherwise by the query's terms or
by token embeddings (`ReadingPlan.select`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from birchbark.deadline import Deadline
from birchbark.pipeline.answers.answer import Snippet
from birchbark.pipeline.reading.document_reader import BATCH_SIZE, EncodedDocument
from birchbark.pipeline.reading.score_segments import SegmentScoring
from birchbark.pipeline.reading.split_for_query import SplitForQuery
from birchbark.pipeline.stored.precompute import WHOLE_DOCUMENT
from birchbark.records import Float32s, Segment, best_first
from birchbark.retrieve.term_overlap import TermIndex, TermOverlap
from birchbark.score.token_embeddings import TokenEmbeddings
from birchbark.segment.split_long import Encoded

SPLITTING_SHARE = 0.5  # of the remaining time, at most, so that what was split can be read
DOCUMENT_SHARE = 0.25  # of that, for one document


@dataclass(frozen=True, slots=True)
class SelectedSegments:
    """Those segments of a document that were chosen to be read.

    segments, encoded: their texts and token ids, in document order. A chosen segment that exceeds
    the scorer's token budget is several of these. order: their positions, best first. chosen: for
    each of them the rank of the chosen segment that it comes from.
    """

    segments: tuple[Segment, ...]
    encoded: EncodedDocument
    order: tuple[int, ...]
    chosen: tuple[int, ...]


class SegmentChoice:
    """Chooses segments of the candidates of one query, and counts what they were chosen from."""

    def __init__(
        self,
        doc_ids: Sequence[str],
        query: str,
        terms: TermIndex,
        main: SegmentScoring,
        embedding: SegmentScoring | None,
        token_embeddings: TokenEmbeddings | None = None,
    ) -> None:
        """Positions in all methods are those in `doc_ids`.

        token_embeddings: chooses segments instead of terms. Attribute in_time: false if time did
        not suffice for splitting one of the documents as far as it should be.
        """
        self.in_time = True
        self._doc_ids, self._query, self._terms = doc_ids, query, terms
        self._main, self._embedding, self._tokens = main, embedding, token_embeddings
        self._counts: dict[int, tuple[int, int]] = {}  # position → segments, unsplit characters
        self._whole: dict[int, Float32s] = {}  # position → the embedding's scores of all segments
        self._partly: dict[int, list[Segment]] = {}  # position → chosen ones, best first

    @cached_property
    def _overlap(self) -> TermOverlap:
        return self._terms.overlap(self._query)

    @property
    def totals(self) -> tuple[int, int]:
        """Number of segments of the documents considered, and of characters that were not split."""
        segments, unsplit = np.array([*self._counts.values(), (0, 0)]).sum(axis=0).tolist()
        return segments, unsplit

    def count(self, position: int, segments: int, unsplit: int = 0) -> None:
        """Record how many segments a document has, and how many characters were not split."""
        self._counts[position] = segments, unsplit

    def count_segments(self, position: int, deadline: Deadline, *, whole: bool) -> int | None:
        """Return how many segments a document has; None if time does not suffice to split it.

        whole: whether all of its segments are to be read.
        """
        if position not in self._counts or (whole and self.unsplit(position)):
            next(self._split(self._main, [position], deadline, whole=whole), None)
        return self._counts[position][0] if position in self._counts else None

    def within(
        self, positions: Sequence[int], pairs: int, segments: int | None, deadline: Deadline
    ) -> tuple[list[int], bool]:
        """Return the first documents that have at most `pairs` segments to read in total.

        At least one document is returned. segments: how many are read of a document; None for all.
        The second value is false if time does not suffice.
        """
        within: list[int] = []
        for position in positions:
            count = self.count_segments(position, deadline, whole=segments is None)
            if count is None:
                return within, False
            pairs -= count if segments is None else min(count, segments)
            if within and pairs < 0:
                break
            within.append(position)
        return within, True

    def unsplit(self, position: int) -> int:
        """Return the number of characters of a document that were not split into segments."""
        return self._counts[position][1]

    def without_long(self, positions: Sequence[int]) -> list[int]:
        """Return the documents that are short enough to be split completely before a deadline.

        The characters of the others, which are not to be read, are counted.
        """
        short = []
        for position in positions:
            length = self._main.length(self._doc_ids[position])
            if length <= WHOLE_DOCUMENT:
                short.append(position)
            else:
                self.count(position, 0, length)
        return short

    def segments_of(self, position: int) -> int:
        """Return how many segments a document is known to have."""
        return self._counts.get(position, (0, 0))[0]

    def add_embedded(self, position: int, scores: Float32s) -> None:
        """Record the embedding's scores (n,) of all segments of a document."""
        self._whole[position] = scores
        self.count(position, len(scores))

    def add_partly_embedded(
        self, position: int, selected: SelectedSegments, scores: Float32s
    ) -> None:
        """Record the embedding's scores (n,) of the chosen segments of a document.

        In later choices these segments precede the document's others, in the order of scores.
        """
        chosen = self._partly[position]
        best = np.full(max(selected.chosen, default=-1) + 1, -np.inf)  # of each chosen segment
        np.maximum.at(best, list(selected.chosen), scores)
        self._partly[position] = [chosen[i] for i in best_first(best)] + chosen[len(best) :]

    def to_embed(
        self, positions: Sequence[int], segments: int, later: int, deadline: Deadline
    ) -> list[SelectedSegments]:
        """Choose the segments that the embedding reads, of as many documents as time allows.

        segments: how many of each document. later: how many the main scorer will read.
        """
        assert self._embedding
        chosen = self._choose(self._embedding, positions, max(segments, later), deadline)
        self._partly |= chosen
        to_embed = {position: best[:segments] for position, best in chosen.items()}
        selected = self._select(self._embedding, to_embed, segments, deadline)
        return [one for _, one in selected]

    def to_read(
        self, positions: Sequence[int], segments: int | None, deadline: Deadline
    ) -> Iterator[tuple[int, SelectedSegments]]:
        """Choose the segments that the main scorer reads, of as many documents as time allows.

        segments: how many of each document; None to read all of them, the best ones first.
        """
        chosen: dict[int, list[Segment]] = {}
        whole = [i for i in positions if i in self._whole]
        if whole and self._embedding:
            known = self._embedding.segments([self._doc_ids[i] for i in whole])
            for position, (_, of_document) in zip(whole, known, strict=True):
                best = best_first(self._whole[position], segments)
                chosen[position] = [of_document[i] for i in best]
        if segments is not None:
            partly = [i for i in positions if i in self._partly]
            chosen |= {position: self._partly[position][:segments] for position in partly}
        rest = [i for i in positions if i not in chosen]
        chosen |= self._choose(self._main, rest, segments, deadline)
        ready = {position: chosen[position] for position in positions if position in chosen}
        return self._select(self._main, ready, segments, deadline)

    def snippets(self, positions: Sequence[int]) -> list[Snippet | None]:
        """Return each document's best segment by the embedding; None if it has read nothing."""
        best = {i: chosen[0] for i in positions if (chosen := self._partly.get(i))}
        whole = [i for i in positions if len(self._whole.get(i, ()))]
        if whole and self._embedding:
            known = self._embedding.segments([self._doc_ids[i] for i in whole])
            for position, (_, segments) in zip(whole, known, strict=True):
                best[position] = segments[int(np.argmax(self._whole[position]))]
        marks = self._overlap.marks
        return [Snippet(best[i], marks(best[i].text)) if i in best else None for i in positions]

    def _split(
        self,
        scoring: SegmentScoring,
        positions: Sequence[int],
        deadline: Deadline,
        *,
        whole: bool,
    ) -> Iterator[SplitForQuery]:
        """Split as many of the first documents as time allows, lazily.

        whole: whether all of their segments are to be read.
        """
        limit = (WHOLE_DOCUMENT if deadline.exists else sys.maxsize) if whole else None
        for position in positions:
            if deadline.passed:
                return
            share = deadline.part(DOCUMENT_SHARE)
            one = scoring.split(self._doc_ids[position], self._overlap, share, limit)
            self.count(position, len(one.segments), one.unsplit)
            self.in_time &= one.in_time
            yield one

    def _choose(
        self,
        scoring: SegmentScoring,
        positions: Sequence[int],
        count: int | None,
        deadline: Deadline,
    ) -> dict[int, list[Segment]]:
        """Choose the `count` best segments of documents, best first; of equals the shorter.

        The result covers as many of the first documents as SPLITTING_SHARE of the time allows.
        """
        chosen: dict[int, list[Segment]] = {}
        part = deadline.part(SPLITTING_SHARE)
        split = self._split(scoring, positions, part, whole=count is None)
        for position, one in zip(positions, split, strict=False):
            scores = self._scores([segment.text for segment in one.segments])
            lengths = np.array([len(segment.text) for segment in one.segments])
            order = np.lexsort((lengths, -scores))[:count]
            chosen[position] = [one.segments[i] for i in order]
        return chosen

    def _scores(self, texts: Sequence[str]) -> NDArray[np.float64]:
        if self._tokens is None:
            return self._overlap.scores(texts)
        return self._tokens.scores(self._query, texts)

    def _select(
        self,
        scoring: SegmentScoring,
        chosen: Mapping[int, Sequence[Segment]],
        count: int | None,
        deadline: Deadline,
    ) -> Iterator[tuple[int, SelectedSegments]]:
        """Encode the chosen segments of each document, which are given best first, for a scorer.

        Yields the position of each document with its segments, for as many as time allows. count:
        the maximum number of a document's segments after long ones have been split.
        """
        remaining = iter(chosen.items())
        while not deadline.passed and (batch := list(islice(remaining, BATCH_SIZE))):
            encoded = iter(scoring.encode([segment for _, best in batch for segment in best]))
            for position, best in batch:
                chunks = [next(encoded) for _ in best]
                yield position, self._selected(self._doc_ids[position], chunks, count)

    def _selected(
        self, doc_id: str, chunks: Sequence[Sequence[Encoded]], count: int | None
    ) -> SelectedSegments:
        """Select `count` chunks: the best one of each segment first, then the second best ones.

        chunks: those of each chosen segment, with the best segment first. Chunks of one segment are
        ranked by the query's terms.
        """
        ranked = []  # rank within the segment, rank of the segment, chunk
        for chosen, of_segment in enumerate(chunks):
            ranks = [0]
            if len(of_segment) > 1:
                ranks = best_first(self._overlap.scores([chunk.text for chunk, _ in of_segment]))
            ranked += [(rank, chosen, of_segment[i]) for rank, i in enumerate(ranks)]
        best = sorted(ranked, key=lambda one: one[:2])[:count]
        in_document = sorted(range(len(best)), key=lambda i: best[i][2][0].start)
        segments = tuple(best[i][2][0] for i in in_document)
        token_ids = tuple(best[i][2][1] for i in in_document)
        size = sum(len(segment.text) for segment in segments)
        order = sorted(range(len(best)), key=lambda i: in_document[i])
        return SelectedSegments(
            segments,
            EncodedDocument(doc_id, token_ids, size),
            tuple(order),
            tuple(best[i][1] for i in in_document),
        )
