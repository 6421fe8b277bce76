"""How is a document split into paragraphs, at blank lines?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from birchbark import defaults
from birchbark.records import Document, Segment
from birchbark.text.line_breaks import BLANK_LINES, with_line_feeds


def paragraphs(document: Document) -> list[Segment]:
    """Return the paragraphs of a document, which are separated by blank lines, in order.

    A title of fewer than 50 words and at most 1,000 characters is prepended to each paragraph. A
    longer title is the beginning of the first paragraph. Together, the segments cover every
    character of `Document.contents` except white space between them.
    """
    return segments_between(document, _blank_lines)


def segments_between(
    document: Document, separators: Callable[[str, int], Iterable[tuple[int, int]]]
) -> list[Segment]:
    """Return the segments between separators; a short title is prepended to each.

    separators: a function that takes the contents, with all line breaks as line feeds, and the
    offset to start from; it returns (start, end) of each separator, which may be empty.
    """
    contents, title = document.contents, document.title
    prepend = 0 < len(title.split()) < defaults.TITLE_LIMIT
    prepend &= len(title) <= defaults.PREPENDED_TITLE_CHARACTERS
    begin = len(title) if prepend else 0
    prefix = f"{title}\n" if prepend else ""
    unix = with_line_feeds(contents)
    segments = [
        Segment(document.doc_id, start, end, prefix + contents[start:end])
        for start, end in _between(unix, begin, list(separators(unix, begin)))
    ]
    if not segments and prepend:
        return [Segment(document.doc_id, 0, begin, title)]
    return segments


def _blank_lines(text: str, begin: int) -> Iterator[tuple[int, int]]:
    return (match.span() for match in BLANK_LINES.finditer(text, begin))


def _between(
    text: str, begin: int, separators: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each text between separators, without surrounding white space."""
    starts = [begin, *(end for _, end in separators)]
    ends = [*(start for start, _ in separators), len(text)]
    for start, end in zip(starts, ends, strict=True):
        between = text[start:end]
        if between.strip():
            yield start + len(between) - len(between.lstrip()), start + len(between.rstrip())
