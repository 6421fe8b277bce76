"""How is a document split into segments for one query, in bounded time and memory?

A document of usual length is split completely. Of a very long one only the stretches are split that
contain most of the query's terms, up to a fixed number of characters; the other characters are
counted. A document is also left unsplit, completely or in part, when the deadline has passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.term_overlap import TermOverlap, best_first
from birchbark.records import Document, Segment
from birchbark.segment.by_name import Segmenter

LONG_DOCUMENT = 200_000  # characters; longer documents are split in part
STRETCH = 10_000  # characters, approximately
STRETCHES = 10  # of a long document, at most


@dataclass(frozen=True, slots=True)
class SplitForQuery:
    """A document and those of its segments that can be read for a query, in document order.

    unsplit: number of characters that were not split into segments.
    """

    document: Document
    segments: tuple[Segment, ...]
    unsplit: int = 0


def split_for_query(
    document: Document, segmenter: Segmenter, overlap: TermOverlap, deadline: Deadline
) -> SplitForQuery:
    """Split a document; of a long one, the stretches that share most terms with the query."""
    too_late = deadline.passed
    if too_late:
        return SplitForQuery(document, (), len(document.contents))
    if len(document.contents) <= LONG_DOCUMENT:
        return SplitForQuery(document, tuple(segmenter(document)))
    text = document.text
    stretches = list(_stretches(text))
    scores = []
    for score in overlap.rough_scores(text[begin:end] for begin, end in stretches):
        scores.append(score)
        if deadline.passed:
            break
    segments: list[Segment] = []
    split = 0
    for position in sorted(best_first(scores, STRETCHES)):
        if deadline.passed:
            break
        begin, end = stretches[position]
        segments += _split_stretch(document, begin, end, segmenter)
        split += end - begin
    return SplitForQuery(document, tuple(segments), len(text) - split)


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of consecutive stretches, which end at a line or word if possible."""
    begin = 0
    while begin < len(text):
        end = min(len(text), begin + STRETCH)
        if end < len(text):
            breaks = (text.rfind(mark, begin + STRETCH // 2, end) for mark in ("\n\n", "\n", " "))
            end = next((at + 1 for at in breaks if at > 0), end)
        yield begin, end
        begin = end


def _split_stretch(
    document: Document, begin: int, end: int, segmenter: Segmenter
) -> Iterator[Segment]:
    """Yield the segments of text[begin:end], with offsets in the whole document.

    The title belongs to the first stretch; later ones have it only where segments are prefixed by
    it.
    """
    title = document.title
    fields = {"title": title} if title else {}
    body = len(document.contents) - len(document.text)  # where the text begins
    stretch = Document(document.doc_id, {**fields, "text": document.text[begin:end]})
    for segment in segmenter(stretch):
        if segment.start >= body:
            yield Segment(segment.doc_id, segment.start + begin, segment.end + begin, segment.text)
        elif begin == 0:
            yield segment
