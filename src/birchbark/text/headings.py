"""Where do headings begin in Markdown and reStructuredText?"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINES = re.compile(r"[^\n]*\n?")
_HASHES = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_MARKS = re.compile(r"^ {0,3}#+|#+\s*$")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_UNDERLINE = re.compile(r"([=\-~^*+#\"'`:.])\1{2,}")


def heading_starts(
    text: str, begin: int = 0, *, markdown: bool = True, restructured_text: bool = True
) -> Iterator[int]:
    """Yield the offset of the line of each heading from `begin` on.

    Headings are written as in Markdown (# to ######, outside fenced code) or as in reStructuredText
    (a line with an underline that is at least as long). text: with line feeds as line breaks.
    markdown, restructured_text: which of the two `text` may be; in Markdown alone, only = and -
    underline.
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
        elif _is_underline(line, previous[1], restructured_text):
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


def _is_underline(line: str, above: str, restructured_text: bool) -> bool:
    """Return whether `line` underlines the line above it, which is then a heading."""
    heading = above.strip()
    return (
        bool(_UNDERLINE.fullmatch(line))
        and (restructured_text or line[0] in "=-")
        and len(line) >= len(heading) > 0
        and not _UNDERLINE.fullmatch(heading)
        and above == heading
    )
