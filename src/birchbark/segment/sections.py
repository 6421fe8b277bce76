"""How is a document split into sections, at its headings?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from birchbark.records import Document, Segment
from birchbark.segment.paragraphs import segments_between

_LINES = re.compile(r"[^\n]*\n?")
_HASHES = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_MARKS = re.compile(r"^ {0,3}#+|#+\s*$")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_UNDERLINE = re.compile(r"([=\-~^*+#\"'`:.])\1{2,}")


def sections(document: Document) -> list[Segment]:
    """Return the sections of a document, in order. Each begins with its heading.

    Text before the first heading is a section too. Headings are written as in Markdown (# to
    ######, outside fenced code) or as in reStructuredText (a line with an underline that is at
    least as long). A title of fewer than 50 words is prepended to each section. A longer title is
    the beginning of the first section. Together, the segments cover every character of
    `Document.contents` except white space between them.
    """
    return segments_between(document, _headings)


def headings(text: str) -> list[str]:
    """Return the headings of a text with line feeds, in order, each on one line without marks."""
    lines = (text[start:].lstrip("\n").partition("\n")[0] for start, _ in _headings(text, 0))
    return [" ".join(_MARKS.sub("", line).split()) for line in lines]


def _headings(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """Yield an empty separator, (start, start), before each heading."""
    previous, fenced = (begin, ""), False  # start and text of the previous line
    for match in _LINES.finditer(text, begin):
        line = match[0].rstrip()
        fence = bool(_FENCE.match(line))
        fenced ^= fence
        if not fenced and not fence and _HASHES.match(line):
            yield match.start(), match.start()
        elif not fenced and not fence and _is_underline(line, previous[1]):
            yield previous[0], previous[0]
        previous = match.start(), line


def _is_underline(line: str, above: str) -> bool:
    """Return whether `line` underlines the line above it, which is then a heading."""
    heading = above.strip()
    return (
        bool(_UNDERLINE.fullmatch(line))
        and len(line) >= len(heading) > 0
        and not _UNDERLINE.fullmatch(heading)
        and above == heading
    )
