"""What is shown of a hit before a model has read it, and where are the query's terms?

A snippet is the sentence with the most terms of the query, weighted by idf, in that stretch of the
text that has most of them. Only this stretch is split into sentences, so that a snippet costs about
the same for every document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from birchbark.deadline import Deadline
from birchbark.pipeline.answers.answer import Hit, Snippet
from birchbark.records import Document, Segment, best_first
from birchbark.retrieve.term_overlap import TermIndex, TermOverlap
from birchbark.segment.sentences import sentence_spans

STRETCH = 2_000  # characters
OVERLAP = 50  # characters that a stretch shares with the next one: longer than a word
MARGIN = 300  # characters split beside a stretch, so that the sentences at its ends are complete
MARKED_SEGMENTS = 20  # of each hit, at most
SECONDS = 0.05  # for all snippets of an answer, if the search has a deadline
FOLLOWING = 2  # sentences after a question or a heading that are shown with it, at most
# Left out before and after what is shown: marks of Markdown, and the borders of tables.
_BEFORE, _AFTER = re.compile(r"[#>*+\-|\s]*(?<=[\s|])"), "| \t\n"
_HEADING = re.compile(r"#{1,6}\s")
_ENDED = re.compile(r"""[.!?…。！？"'”’)\]]$""")  # a heading has no such end
ALWAYS_SEARCHED = 200_000  # characters of each text, even if no time is left: about a millisecond


def _bare(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without the marks around it, unless nothing else is left."""
    before = _BEFORE.match(text[start:end])
    begin = start + (before.end() if before else 0)
    stop = begin + len(text[begin:end].rstrip(_AFTER))
    return (begin, stop) if begin < stop else (start, end)


def _announces(sentence: str) -> bool:
    """Whether what a sentence is about comes after it: it is a question or a heading."""
    bare = sentence.strip()
    return bare.endswith(("?", ":")) or bool(_HEADING.match(bare)) or not _ENDED.search(bare)


class Snippets:
    """Makes the snippets of one query's hits.

    If the search has a deadline, a stretch is chosen from the first ALWAYS_SEARCHED characters of a
    text and as much of the others as can be searched in SECONDS, for all hits together. The
    deadline of the search itself may have passed before.
    """

    def __init__(self, terms: TermIndex, query: str, deadline: Deadline) -> None:
        """terms: the index of the terms of the documents; deadline: that of the search."""
        self._overlap = terms.overlap(query)
        self._most = next(self._overlap.rough_scores([query]))  # the score of a complete match
        self._has_deadline = deadline.exists
        self._found: dict[str, Snippet | None] = {}  # by doc_id; answers of one search share them

    def complete(self, hits: Iterable[Hit]) -> tuple[Hit, ...]:
        """Add snippets to hits that have neither evidence nor snippet, and marks to evidence."""
        deadline = Deadline(SECONDS if self._has_deadline else None)
        return tuple(self._complete(hit, deadline) for hit in hits)

    def _complete(self, hit: Hit, deadline: Deadline) -> Hit:
        if hit.segments:
            return self.mark(hit)
        if hit.snippet:
            return hit
        doc_id = hit.document.doc_id
        if doc_id not in self._found:
            self._found[doc_id] = self._find(hit.document, deadline)
        return replace(hit, snippet=self._found[doc_id])

    def mark(self, hit: Hit) -> Hit:
        """Mark terms and best sentence in the first MARKED_SEGMENTS segments of a hit."""
        marked = [
            replace(
                evidence,
                marks=self._overlap.marks(evidence.segment.text),
                sentence=next(iter(self.sentences(evidence.segment, hit.document, 1)), None),
            )
            for evidence in hit.segments[:MARKED_SEGMENTS]
        ]
        return replace(hit, segments=(*marked, *hit.segments[MARKED_SEGMENTS:]))

    def sentences(self, segment: Segment, document: Document, most: int) -> list[tuple[int, int]]:
        """Return the spans of a segment's sentences with most terms; none if it has but one.

        At most `most` are returned, the one with most terms first. A title in front of the
        segment's own text is left out, and a question or a heading has the sentence after it.
        """
        own = len(segment.text) - (segment.end - segment.start)  # where its own text begins
        if own < 0:  # of a segmenter that changes texts
            return []
        if not own and segment.start == 0 < len(document.title) < segment.end:
            own = len(document.title)
        spans = sentence_spans(segment.text[own:])
        if len(spans) + bool(own) < 2 or not spans:
            return []
        texts = [segment.text[own + start : own + end] for start, end in spans]
        found = []
        for first in best_first(self._overlap.scores(texts), most):
            last = first
            while last - first < FOLLOWING and last + 1 < len(spans) and _announces(texts[last]):
                last += 1
            found.append(_bare(segment.text, own + spans[first][0], own + spans[last][1]))
        return found

    def _find(self, document: Document, deadline: Deadline) -> Snippet | None:
        """Return the snippet of a document; None if it has no text besides its title."""
        text = document.text
        begin = _best_stretch(text, self._overlap, self._most, deadline)
        spans, complete = _sentences_around(text, begin)
        if not spans:
            return None
        scores = self._overlap.scores([text[start:end] for start, end in spans])
        best = max(range(len(spans)), key=lambda i: (scores[i], complete[i], -i))
        start, end = spans[best]
        offset = len(document.title) + 1 if document.title else 0  # of the text in the contents
        segment = Segment(document.doc_id, offset + start, offset + end, text[start:end])
        return Snippet(segment, self._overlap.marks(segment.text))


def _best_stretch(text: str, overlap: TermOverlap, most: float, deadline: Deadline) -> int:
    """Return where the first stretch with the highest rough score begins.

    most: the search ends with a stretch that has this score.
    """
    begins = range(0, len(text), STRETCH)
    best, best_score = 0, 0.0
    scores = overlap.rough_scores(text[begin : begin + STRETCH + OVERLAP] for begin in begins)
    for begin, score in zip(begins, scores, strict=True):
        if score > best_score:
            best, best_score = begin, score
        if score >= most or (begin >= ALWAYS_SEARCHED and deadline.passed):
            break
    return best


def _sentences_around(text: str, stretch: int) -> tuple[list[tuple[int, int]], list[bool]]:
    """Return (start, end) of the sentences in and beside a stretch, and whether each is complete.

    Those at the ends count as incomplete unless the text begins or ends there.
    """
    begin, end = max(0, stretch - MARGIN), stretch + STRETCH + OVERLAP + MARGIN
    spans = [(begin + a, begin + b) for a, b in sentence_spans(text[begin:end]) if a < b]
    complete = [True] * len(spans)
    if spans:
        complete[0] &= begin == 0
        complete[-1] &= end >= len(text)
    return spans, complete
