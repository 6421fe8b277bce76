"""How is a document split into sections, at its headings or functions?"""

from __future__ import annotations

from collections.abc import Iterator

from birchbark.records import Document, Segment
from birchbark.segment.paragraphs import segments_between
from birchbark.segment.section_starts import section_starts
from birchbark.text.headings import heading_starts


def sections(document: Document) -> list[Segment]:
    """Return the sections of a document, in order. Each begins with its heading.

    Text before the first heading is a section too. If the document does not say where its sections
    begin (`section_starts`), they begin at headings of Markdown and reStructuredText. A title of
    fewer than 50 words and at most 1,000 characters is prepended to each section. A longer title is
    the beginning of the first section. Together, the segments cover every character of
    `Document.contents` except white space between them.
    """
    stated = section_starts(document)

    def separators(text: str, begin: int) -> Iterator[tuple[int, int]]:
        """Yield an empty separator, (start, start), before each section."""
        return ((start, start) for start in stated or heading_starts(text, begin))

    return segments_between(document, separators)
