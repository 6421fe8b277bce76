"""How is a document cut where its author began a new paragraph?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from birchbark.records import Document, Segment

LONGEST_TITLE = 50  # words, as for windows
_BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")


def paragraphs(document: Document) -> list[Segment]:
    """The paragraphs of a document: what stands between blank lines, in order.

    A title of fewer than 50 words stands in front of each; a longer one is the beginning of the
    first. Together they cover every character of `Document.contents` but white space between them.
    """
    return titled(document, _blank_lines)


def titled(
    document: Document, marks: Callable[[str, int], Iterable[tuple[int, int]]]
) -> list[Segment]:
    """What stands between `marks` in the document's contents, a short title in front of each.

    marks: of a text with line ends of Unix, from a place on: start and end of what parts pieces.
    """
    contents, title = document.contents, document.title
    in_front = 0 < len(title.split()) < LONGEST_TITLE
    begin = len(title) if in_front else 0
    prefix = f"{title}\n" if in_front else ""
    unix = contents.replace("\r\n", " \n").replace("\r", "\n")  # as long as before
    found = [
        Segment(document.doc_id, start, end, prefix + contents[start:end])
        for start, end in _between(unix, begin, list(marks(unix, begin)))
    ]
    if not found and in_front:
        return [Segment(document.doc_id, 0, begin, title)]
    return found


def _blank_lines(text: str, begin: int) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _BLANK_LINES.finditer(text, begin))


def _between(text: str, begin: int, marks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Start and end of what stands between marks, white space around it left out."""
    starts = [begin, *(end for _, end in marks)]
    ends = [*(start for start, _ in marks), len(text)]
    for start, end in zip(starts, ends, strict=True):
        piece = text[start:end]
        if piece.strip():
            yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
