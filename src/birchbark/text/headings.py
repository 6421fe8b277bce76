"""Where do headings begin in Markdown and reStructuredText?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINES = re.compile(r"[^\n]*\n?")
_HASHES = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_MARKS = re.compile(r"^ {0,3}#+|#+\s*$")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(.+)")
_SETEXT = re.compile(r" {0,3}(?:={2,}|-{3,})[ \t]*")
_SETEXT_TITLE = re.compile(r" {0,3}(?![-+*>#|=]|\d+[.)]|```|~~~)\S")
_UNDERLINE = re.compile(r"([=\-~^*+#\"'`:.])\1{2,}")


class MarkdownHeading(NamedTuple):
    """A heading: the lines from `start` to before `end`, its level from 1, and its text."""

    start: int
    end: int
    level: int
    text: str


def markdown_headings(lines: list[str]) -> Iterator[MarkdownHeading]:
    """Yield the headings of Markdown outside fenced code: after #, or one line with an underline.

    That line begins a paragraph. lines: without their line breaks.
    """
    fence, in_paragraph = "", False
    for number, line in enumerate(lines):
        before, fence = fence, fence_after(fence, line)
        if before or fence:
            in_paragraph = False
            continue
        if found := _HEADING.fullmatch(line):
            title = found[2].rstrip()
            text = title.rstrip("#")
            closed = len(text) < len(title) and text[-1:] in ("", " ", "\t")
            text = text if closed else title
            yield MarkdownHeading(number, number + 1, len(found[1]), text.strip())
        underline = lines[number + 1] if number + 1 < len(lines) else ""
        if not in_paragraph and _SETEXT.fullmatch(underline) and _SETEXT_TITLE.match(line):
            yield MarkdownHeading(number, number + 2, 1 if "=" in underline else 2, line.strip())
        in_paragraph = bool(line.strip()) and not found and not _SETEXT.fullmatch(line)


def heading_starts(text: str, begin: int = 0, *, markdown: bool = True) -> Iterator[int]:
    """Yield the offset of the line of each heading from `begin` on.

    Headings are written as in Markdown (# to ######, outside fenced code) or as in reStructuredText
    (a line with an underline that is at least as long). text: with line feeds as line breaks.
    markdown: whether it may be in Markdown; see `markdown_headings` for text that is.
    """
    previous = begin, ""  # start and text of the previous line
    fence = ""  # the marks that began the code in which the line is
    for match in _LINES.finditer(text, begin):
        line = match[0].rstrip()
        if fence:
            fence = fence_after(fence, line)
        elif markdown and _HASHES.match(line):
            yield match.start()
        elif markdown and line.startswith("```"):
            fence = fence_after("", line)
        elif _is_underline(line, previous[1]):
            yield previous[0]
        elif markdown:
            fence = fence_after("", line)
        previous = match.start(), line


def headings(text: str) -> list[str]:
    """Return the headings of a text with line feeds, in order, each on one line without marks."""
    return [heading_at(text, start) for start in heading_starts(text)]


def heading_at(text: str, start: int) -> str:
    """Return the heading whose line begins at an offset, on one line without marks."""
    end = text.find("\n", start)
    line = text[start : end if end >= 0 else len(text)]
    return " ".join(_MARKS.sub("", line).split())


def fence_after(fence: str, line: str) -> str:
    """Return the marks that began the code in which Markdown is after a line; empty if in none.

    fence: the same before the line.
    """
    if not fence:
        found = _FENCE.match(line)
        return found[1] if found else ""
    marks = line.strip()
    return "" if marks.startswith(fence) and not marks.strip(fence[0]) else fence


def _is_underline(line: str, above: str) -> bool:
    """Return whether `line` underlines the line above it, which is then a heading."""
    heading = above.strip()
    return (
        bool(_UNDERLINE.fullmatch(line))
        and len(line) >= len(heading) > 0
        and not _UNDERLINE.fullmatch(heading)
        and above == heading
    )
