"""How is a document split into segments for one query, in bounded time and memory?

A document of usual length is split completely. Of a very long one only the stretches are split that
contain most of the query's terms, up to a fixed number of characters; the other characters are
counted. Nothing is split after the deadline; before it, at least one stretch of a long document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, tee

from birchbark.deadline import Deadline
from birchbark.recently_used import RecentlyUsed
from birchbark.records import Document, Segment, best_first, stated_sections
from birchbark.retrieve.term_overlap import TermOverlap
from birchbark.segment.by_name import Segmenter
from birchbark.segment.section_starts import section_starts

LONG_DOCUMENT = 10_000  # characters; longer documents are split in part
STRETCH = 2_000  # characters, approximately; more if there would be more than MAX_STRETCHES
MAX_STRETCHES = 2_000  # that are considered
STRETCHES = LONG_DOCUMENT // STRETCH  # of a long document, at most
CHOOSING_SHARE = 0.5  # of the time for a long document, at most, to choose stretches

SplitStretches = RecentlyUsed[tuple[str, int], tuple[Segment, ...]]  # by doc_id and begin


@dataclass(frozen=True, slots=True)
class SplitForQuery:
    """Those segments of a document that can be read for a query, in document order.

    unsplit: number of characters of its contents that were not split into segments. in_time: false
    if the deadline passed before everything was split that should be.
    """

    segments: tuple[Segment, ...]
    unsplit: int = 0
    in_time: bool = True


def split_for_query(
    document: Document,
    segmenter: Segmenter,
    overlap: TermOverlap,
    deadline: Deadline,
    known: SplitStretches | None = None,
    limit: int | None = None,
) -> SplitForQuery:
    """Split a document; of a long one, the stretches that share most terms with the query.

    known: the segments of stretches split before, to which new ones are added. limit: how many
    characters a document has at most that is split completely; LONG_DOCUMENT by default.
    """
    contents, too_late = document.contents, deadline.passed
    if too_late:
        return SplitForQuery((), len(contents), in_time=False)
    if len(contents) <= (LONG_DOCUMENT if limit is None else limit):
        return SplitForQuery(tuple(segmenter(document)))
    title, known = _title_of_stretches(document), RecentlyUsed(0) if known is None else known
    starts = section_starts(document)
    best, complete = _best_stretches(contents, title, overlap, deadline.part(CHOOSING_SHARE))
    split: dict[tuple[int, int], tuple[Segment, ...]] = {}
    for begin, end in best:
        if split and deadline.passed:
            break
        key = document.doc_id, begin
        segments = known.get(key)
        if segments is None:
            inside = [start for start in starts if begin <= start < end]
            segments = tuple(_split_stretch(key, end, title, contents, inside, segmenter))
            known.add(key, segments, end - begin)
        split[begin, end] = segments
    unsplit = len(contents) - sum(end - begin for begin, end in split)
    in_document_order = tuple(chain.from_iterable(split[stretch] for stretch in sorted(split)))
    return SplitForQuery(in_document_order, unsplit, complete and len(split) == len(best))


def _best_stretches(
    contents: str, title: str, overlap: TermOverlap, deadline: Deadline
) -> tuple[list[tuple[int, int]], bool]:
    """Return (start, end) of the stretches to split, best first; false if there was no more time.

    Under a deadline they are the best of as many of the first stretches as time allows.
    """
    all_stretches, texts = tee(_stretches(contents, len(title)))
    rough_scores = overlap.rough_scores(contents[begin:end] for begin, end in texts)
    stretches, scores = [], []
    for stretch, score in zip(all_stretches, rough_scores, strict=True):
        stretches.append(stretch)
        scores.append(score)
        if deadline.passed:
            break
    best = [stretches[i] for i in best_first(scores, STRETCHES)]
    return best, stretches[-1][1] == len(contents)


def _stretches(contents: str, title: int) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of consecutive stretches, which end at a line or word if possible.

    title: length of the title, which does not count towards the length of the first stretch.
    """
    begin, text = 0, title
    length = max(STRETCH, len(contents) // MAX_STRETCHES)
    while begin < len(contents):
        end = min(len(contents), text + length)
        if end < len(contents):
            half = text + length // 2
            breaks = (contents.rfind(mark, half, end) for mark in ("\n\n", "\n", " "))
            end = next((at + 1 for at in breaks if at > 0), end)
        yield begin, end
        begin = text = end


def _title_of_stretches(document: Document) -> str:
    """Return the title; '' if it is so long that it is split like the text."""
    return document.title if document.text and len(document.title) < STRETCH else ""


def _split_stretch(
    key: tuple[str, int],
    end: int,
    title: str,
    contents: str,
    starts: Sequence[int],
    segmenter: Segmenter,
) -> Iterator[Segment]:
    """Yield the segments of contents[begin:end], with offsets in the contents.

    key: the document's id, and begin. starts: `section_starts` of the stretch. A segment of the
    title alone belongs to the first stretch. Later stretches have the title only where it precedes
    the text of a segment.
    """
    (doc_id, begin), text = key, len(title) + 1 if title else 0  # where the text begins
    fields = {"title": title} if title else {}
    first = max(begin, text)  # character of the text
    shift = first - text
    sections = stated_sections(start - first for start in starts)
    stretch = Document(doc_id, {**fields, **sections, "text": contents[first:end]})
    for segment in segmenter(stretch):
        if not begin:
            yield segment
        elif segment.end > text:
            start = max(segment.start, text) + shift
            yield Segment(doc_id, start, segment.end + shift, segment.text)
