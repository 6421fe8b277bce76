"""Which segments of each candidate are read for a query, and in which order?

Segments are chosen by the embedding's scores where there are any, otherwise by the query's terms or
by token embeddings (`ReadingPlan.select`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from birchbark.pipeline.answer import Snippet
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.read_documents import EncodedDocument
from birchbark.pipeline.score_segments import SegmentScoring
from birchbark.pipeline.split_for_query import SplitForQuery
from birchbark.pipeline.term_overlap import TermIndex, TermOverlap, best_first
from birchbark.records import Document, Float32s, Segment
from birchbark.score.token_embeddings import TokenEmbeddings
from birchbark.segment.split_long import Encoded


@dataclass(frozen=True, slots=True)
class SelectedDocument:
    """A document and those of its segments that were chosen to be read.

    segments, encoded: the chosen segments and their token ids, in document order; a segment that
    exceeds the scorer's token budget is several. order: their positions, best first.
    """

    document: Document
    segments: tuple[Segment, ...]
    encoded: EncodedDocument
    order: tuple[int, ...]


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

        token_embeddings: chooses segments instead of terms.
        """
        self._doc_ids, self._query, self._terms = doc_ids, query, terms
        self._main, self._embedding, self._tokens = main, embedding, token_embeddings
        self._counts: dict[int, tuple[int, int]] = {}  # position → segments, unsplit characters
        self._whole: dict[int, Float32s] = {}  # position → the embedding's scores of all segments
        self._partly: dict[int, tuple[Document, list[Segment]]] = {}  # chosen ones, best first

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

    def count_segments(self, position: int, deadline: Deadline) -> int | None:
        """Return how many segments a document has; None if time does not suffice to split it."""
        if position not in self._counts and not self._split(self._main, [position], deadline):
            return None
        return self._counts[position][0]

    def add_embedded(self, position: int, scores: Float32s) -> None:
        """Record the embedding's scores (n,) of all segments of a document."""
        self._whole[position] = scores
        self.count(position, len(scores))

    def add_partly_embedded(
        self, position: int, selected: SelectedDocument, scores: Float32s
    ) -> None:
        """Record the embedding's scores (n,) of the chosen segments of a document.

        In later choices these segments precede the document's others, in the order of scores.
        """
        read = [selected.segments[i] for i in best_first(scores)]
        document, chosen = self._partly[position]
        known = {(segment.start, segment.end) for segment in read}
        rest = [one for one in chosen if (one.start, one.end) not in known]
        self._partly[position] = document, read + rest

    def to_embed(
        self, positions: Sequence[int], segments: int, later: int, deadline: Deadline
    ) -> list[SelectedDocument]:
        """Choose the segments that the embedding reads, of as many documents as time allows.

        segments: how many of each document. later: how many the main scorer will read.
        """
        assert self._embedding
        split = self._split(self._embedding, positions, deadline)
        chosen = self._choose(split, max(segments, later))
        self._partly.update(zip(positions, chosen, strict=False))
        return _select(self._embedding, [(one, best[:segments]) for one, best in chosen])

    def to_read(
        self, positions: Sequence[int], segments: int | None, deadline: Deadline
    ) -> Iterator[tuple[int, SelectedDocument]]:
        """Choose the segments that the main scorer reads, of as many documents as time allows.

        segments: how many of each document; None to read all of them, the best ones first.
        """
        chosen: dict[int, tuple[Document, list[Segment]]] = {}
        whole = [i for i in positions if i in self._whole and self._embedding]
        if whole and self._embedding:
            known = self._embedding.segments([self._doc_ids[i] for i in whole])
            for position, (document, of_document) in zip(whole, known, strict=True):
                best = best_first(self._whole[position], segments)
                chosen[position] = document, [of_document[i] for i in best]
        for position in positions:
            if segments is not None and position in self._partly:
                document, best_segments = self._partly[position]
                chosen[position] = document, best_segments[:segments]
        rest = [i for i in positions if i not in chosen]
        split = self._split(self._main, rest, deadline)
        chosen.update(zip(rest, self._choose(split, segments), strict=False))
        ready = [i for i in positions if i in chosen]
        yield from zip(ready, _select(self._main, [chosen[i] for i in ready]), strict=True)

    def snippet(self, position: int, document: Document) -> Snippet | None:
        """Return the segment that fits the query best by the embedding; None if it read nothing."""
        if position in self._whole and self._embedding and len(self._whole[position]):
            _, segments = next(self._embedding.segments([document.doc_id]))
            return self._overlap.snippet(segments[int(np.argmax(self._whole[position]))])
        if position in self._partly and self._partly[position][1]:
            return self._overlap.snippet(self._partly[position][1][0])
        return None

    def _split(
        self, scoring: SegmentScoring, positions: Sequence[int], deadline: Deadline
    ) -> list[SplitForQuery]:
        """Split as many of the first documents as time allows."""
        doc_ids = [self._doc_ids[i] for i in positions]
        result = []
        for position, one in zip(
            positions, scoring.split(doc_ids, self._overlap, deadline), strict=True
        ):
            self.count(position, len(one.segments), one.unsplit)
            if one.unsplit and not one.segments:
                break  # time is up
            result.append(one)
        return result

    def _choose(
        self, split: Sequence[SplitForQuery], count: int | None
    ) -> list[tuple[Document, list[Segment]]]:
        """Choose the `count` best segments of each document, best first; of equals the shorter."""
        texts = [segment.text for one in split for segment in one.segments]
        scores = self._scores(texts)
        begin, chosen = 0, []
        for one in split:
            end = begin + len(one.segments)
            lengths = [len(segment.text) for segment in one.segments]
            order = np.lexsort((np.array(lengths), -scores[begin:end]))
            chosen.append((one.document, [one.segments[i] for i in order[:count]]))
            begin = end
        return chosen

    def _scores(self, texts: Sequence[str]) -> NDArray[np.float64]:
        if self._tokens is None:
            return self._overlap.scores(texts)
        query, *encoded = self._main.encode_texts([self._query, *texts])
        return self._tokens.cosines(query, encoded)


def _select(
    scoring: SegmentScoring, chosen: Sequence[tuple[Document, list[Segment]]]
) -> list[SelectedDocument]:
    """Encode the chosen segments of each document for a scorer; they are given best first."""
    encoded = iter(scoring.encode([segment for _, best in chosen for segment in best]))
    return [_selected(document, [next(encoded) for _ in best]) for document, best in chosen]


def _selected(document: Document, best: Sequence[Sequence[Encoded]]) -> SelectedDocument:
    """Bring the chunks of a document's chosen segments, given best first, into document order."""
    chunks = [chunk for of_segment in best for chunk in of_segment]
    in_document = sorted(range(len(chunks)), key=lambda i: chunks[i][0].start)
    order = sorted(range(len(chunks)), key=lambda i: in_document[i])
    segments = tuple(chunks[i][0] for i in in_document)
    token_ids = tuple(chunks[i][1] for i in in_document)
    encoded = EncodedDocument(document.doc_id, token_ids, sum(len(s.text) for s in segments))
    return SelectedDocument(document, segments, encoded, tuple(order))
