"""How is a document cut where a heading stands?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from birchbark.records import Document, Segment
from birchbark.segment.paragraphs import titled

_LINES = re.compile(r"[^\n]*\n?")
_HASHES = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_RULE = re.compile(r"([=\-~^*+#\"'`:.])\1{2,}")


def sections(document: Document) -> list[Segment]:
    """The sections of a document, each with its heading; what stands before the first is one.

    Headings are those of Markdown (# to ######, outside of fenced code) and of reStructuredText: a
    line with a rule below it that is as long. A document without headings is one section. A title
    of fewer than 50 words stands in front of each; a longer one is the beginning of the first.
    Together they cover every character of `Document.contents` but white space between them.
    """
    return titled(document, _headings)


def _headings(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """Where each heading begins, as marks that are empty."""
    before, fenced = (begin, ""), False
    for match in _LINES.finditer(text, begin):
        line = match[0].rstrip()
        fence = bool(_FENCE.match(line))
        fenced ^= fence
        if not fenced and not fence and _HASHES.match(line):
            yield match.start(), match.start()
        elif not fenced and not fence and _is_rule(line, before[1]):
            yield before[0], before[0]
        before = match.start(), line


def _is_rule(line: str, above: str) -> bool:
    """Whether `line` makes a heading of the line above it."""
    heading = above.strip()
    return (
        bool(_RULE.fullmatch(line))
        and len(line) >= len(heading) > 0
        and not _RULE.fullmatch(heading)
        and above == heading
    )
