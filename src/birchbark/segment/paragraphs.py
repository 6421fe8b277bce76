"""How is a document cut where its author began a new paragraph?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from birchbark.records import Document, Segment

LONGEST_TITLE = 50  # words, as for windows
_BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")


def paragraphs(document: Document) -> list[Segment]:
    """The paragraphs of a document: what stands between blank lines, in order.

    A title of fewer than 50 words stands in front of each; a longer one is the beginning of the
    first. Together they cover every character of `Document.contents` but white space between them.
    """
    contents, title = document.contents, document.title
    in_front = 0 < len(title.split()) < LONGEST_TITLE
    begin = len(title) if in_front else 0
    prefix = f"{title}\n" if in_front else ""
    found = [
        Segment(document.doc_id, start, end, prefix + contents[start:end])
        for start, end in _spans(contents, begin)
    ]
    if not found and in_front:
        return [Segment(document.doc_id, 0, begin, title)]
    return found


def _spans(contents: str, begin: int) -> Iterator[tuple[int, int]]:
    """Start and end of what stands between blank lines, white space around it left out."""
    unix = contents.replace("\r\n", " \n").replace("\r", "\n")  # as long as before
    marks = [(m.start(), m.end()) for m in _BLANK_LINES.finditer(unix, begin)]
    starts = [begin, *(end for _, end in marks)]
    ends = [*(start for start, _ in marks), len(unix)]
    for start, end in zip(starts, ends, strict=True):
        text = unix[start:end]
        if text.strip():
            left = len(text) - len(text.lstrip())
            yield start + left, start + len(text.rstrip())
