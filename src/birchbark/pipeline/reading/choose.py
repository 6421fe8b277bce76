"""Which segments of each candidate are read for a query, and in which order?

Segments are chosen by the embedding's scores where there are any, otherwise by those of the static
embedding, otherwise by the query's terms. What was counted and chosen is recorded in the table of
candidates.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile

import numpy as np

from birchbark.deadline import Deadline
from birchbark.pipeline.answers.answer import Snippet
from birchbark.pipeline.reading.candidates import UNKNOWN, Candidates
from birchbark.pipeline.reading.document_reader import BATCH_SIZE
from birchbark.pipeline.reading.query_scoring import QueryScoring
from birchbark.pipeline.reading.stretches import SplitForQuery
from birchbark.records import Document, Float32s, Ids, Segment, best_first
from birchbark.retrieve.term_overlap import TermIndex, TermOverlap
from birchbark.segment.split_long import Encoded

SPLITTING_SHARE = 0.5  # of the remaining time, at most, so that what was split can be read
DOCUMENT_SHARE = 0.25  # of that, for one document
WHOLE_DOCUMENT = 200_000  # characters of a document that is split completely before a deadline


@dataclass(frozen=True, slots=True)
class SelectedSegments:
    """Those segments of a document that were chosen to be read.

    segments, token_ids: they and their token ids, in document order. A chosen segment that exceeds
    the scorer's token budget is several of these. order: their positions, best first. chosen: for
    each of them the rank of the chosen segment that it comes from.
    """

    segments: tuple[Segment, ...]
    token_ids: tuple[Ids, ...]
    order: tuple[int, ...]
    chosen: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _OnlyWord:
    """The only word of a query. longest: characters of a document in which it is looked for."""

    overlap: TermOverlap
    longest: int

    def missing_from(
        self, chosen: Sequence[Segment], document: Document, segments: Sequence[Segment]
    ) -> Segment | None:
        """Return the document's first segment with the word; None without, or if it is chosen."""
        text = document.contents
        if len(text) > self.longest or any(map(self._is_in, chosen)):
            return None
        if not any(self.overlap.rough_scores([text])):
            return None
        return next(filter(self._is_in, segments), None)

    def _is_in(self, segment: Segment) -> bool:
        return bool(self.overlap.scores([segment.text]).any())


class SegmentChoice:
    """Chooses segments of the candidates of one query."""

    def __init__(
        self,
        query: str,
        terms: TermIndex,
        main: QueryScoring,
        embedding: QueryScoring | None,
        static: QueryScoring | None = None,
    ) -> None:
        """main, embedding, static: score segments by these models."""
        self._query, self._terms = query, terms
        self._main, self._embedding, self._static = main, embedding, static

    @cached_property
    def _overlap(self) -> TermOverlap:
        return self._terms.overlap(self._query)

    def within(
        self,
        table: Candidates,
        positions: Sequence[int],
        pairs: int,
        segments: int | None,
        deadline: Deadline,
    ) -> tuple[list[int], bool]:
        """Return the first documents that have at most `pairs` segments to read in total.

        At least one document is returned. segments: how many are read of a document; None for all.
        The second value is false if time does not suffice.
        """
        within: list[int] = []
        for position in positions:
            whole, known = segments is None, table.segments[position] != UNKNOWN
            if not known or (whole and table.unsplit[position]):
                next(self._split(table, self._main, [position], deadline, whole=whole), None)
            count = int(table.segments[position])
            if count == UNKNOWN:
                return within, False
            pairs -= count if segments is None else min(count, segments)
            if within and pairs < 0:
                break
            within.append(position)
        return within, True

    def without_long(self, table: Candidates, positions: Sequence[int]) -> list[int]:
        """Return the documents that are short enough to be split completely before a deadline.

        The characters of the others, which are not to be read, are counted.
        """
        short = []
        for position in positions:
            (document,) = self._main.reader.documents([table.doc_ids[position]])
            length = len(document.contents)
            if length <= WHOLE_DOCUMENT:
                short.append(position)
            else:
                table.record_split(position, 0, length)
        return short

    def to_embed(
        self,
        table: Candidates,
        positions: Sequence[int],
        segments: int,
        later: int,
        deadline: Deadline,
    ) -> list[SelectedSegments]:
        """Choose the segments that the embedding reads, of as many of the first as time allows.

        segments: how many of each document. later: how many the main scorer will read.
        """
        assert self._embedding
        chosen = self._choose(table, self._embedding, positions, max(segments, later), deadline)
        to_embed = {}
        for position in takewhile(chosen.__contains__, positions):
            table.chosen[position] = chosen[position]
            to_embed[position] = chosen[position][:segments]
        selected = self._select(table, self._embedding, to_embed, segments, deadline)
        return [one for _, one in selected]

    def to_read(
        self, table: Candidates, positions: Sequence[int], segments: int | None, deadline: Deadline
    ) -> Iterator[tuple[int, SelectedSegments]]:
        """Choose the segments that the main scorer reads, of as many documents as time allows.

        segments: how many of each document; None to read all of them, the best ones first.
        """
        word = self._only_word(deadline)
        chosen = _best(self._embedding, table, table.embedded, positions, segments, word)
        if segments is not None:
            partly = {i: best for i in positions if (best := table.chosen[i]) is not None}
            chosen |= {position: best[:segments] for position, best in partly.items()}
        rest = [i for i in positions if i not in chosen]
        chosen |= self._choose(table, self._main, rest, segments, deadline)
        ready = {position: chosen[position] for position in positions if position in chosen}
        return self._select(table, self._main, ready, segments, deadline)

    def _only_word(self, deadline: Deadline) -> _OnlyWord | None:
        """Return the only word of the query, to include a segment with it; None for several.

        Who searches for a single word looks for the places where it is, which vectors may miss.
        """
        if len(self._overlap.terms) != 1:
            return None
        return _OnlyWord(self._overlap, WHOLE_DOCUMENT if deadline.exists else sys.maxsize)

    def snippets(self, table: Candidates, positions: Sequence[int]) -> list[Snippet | None]:
        """Return each document's best segment by the embedding; None if it has read nothing."""
        best = _best(self._static, table, table.static, positions, 1)
        best |= {i: chosen[:1] for i in positions if (chosen := table.chosen[i])}
        best |= _best(self._embedding, table, table.embedded, positions, 1)
        texts = {i: segments[0] for i, segments in best.items() if segments}
        marks = self._overlap.marks
        return [Snippet(texts[i], marks(texts[i].text)) if i in texts else None for i in positions]

    def _split(
        self,
        table: Candidates,
        scoring: QueryScoring,
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
            one = scoring.reader.split(table.doc_ids[position], self._overlap, share, limit)
            table.record_split(position, len(one.segments), one.unsplit)
            table.split_in_time &= one.in_time
            yield one

    def _choose(
        self,
        table: Candidates,
        scoring: QueryScoring,
        positions: Sequence[int],
        count: int | None,
        deadline: Deadline,
    ) -> dict[int, list[Segment]]:
        """Choose the `count` best segments of documents, best first; of equals the shorter.

        The result covers documents with static vectors, unless all segments are wanted before a
        deadline, and as many of the first of the others as SPLITTING_SHARE of the time allows.
        """
        everything = count is None and deadline.exists
        word, known = self._only_word(deadline), table.static
        chosen = {} if everything else _best(self._static, table, known, positions, count, word)
        others = [i for i in positions if i not in chosen]
        part = deadline.part(SPLITTING_SHARE)
        split = self._split(table, scoring, others, part, whole=count is None)
        for position, one in zip(others, split, strict=False):
            scores = self._overlap.scores([segment.text for segment in one.segments])
            lengths = np.array([len(segment.text) for segment in one.segments])
            order = np.lexsort((lengths, -scores))[:count]
            chosen[position] = [one.segments[i] for i in order]
        return chosen

    def _select(
        self,
        table: Candidates,
        scoring: QueryScoring,
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
                yield position, self._selected(chunks, count)

    def _selected(self, chunks: Sequence[Sequence[Encoded]], count: int | None) -> SelectedSegments:
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
        order = sorted(range(len(best)), key=lambda i: in_document[i])
        return SelectedSegments(
            tuple(best[i][2][0] for i in in_document),
            tuple(best[i][2][1] for i in in_document),
            tuple(order),
            tuple(best[i][1] for i in in_document),
        )


def _best(
    scoring: QueryScoring | None,
    table: Candidates,
    known: Sequence[Float32s | None],
    positions: Sequence[int],
    count: int | None,
    word: _OnlyWord | None = None,
) -> dict[int, list[Segment]]:
    """Return the `count` best segments of the documents of which `scoring` has read all segments.

    Best first. known: the scores (segments,) of each document of the table, or None. word: of which
    a segment takes the last place if none of the others has it.
    """
    scores = {i: of_document for i in positions if (of_document := known[i]) is not None}
    if not scores or not scoring:
        return {}
    split = scoring.segments([table.doc_ids[i] for i in scores])
    best = {}
    for (position, of_document), (document, segments) in zip(scores.items(), split, strict=True):
        chosen = best[position] = [segments[i] for i in best_first(of_document, count)]
        if word and chosen and len(chosen) < len(segments):
            chosen[-1] = word.missing_from(chosen, document, segments) or chosen[-1]
    return best
