"""How is a single field of a document, its title or its text, read as one segment?"""

from __future__ import annotations

from birchbark.records import Document, Segment


def title(document: Document) -> list[Segment]:
    """Return the title as a single segment, or no segment if it is blank."""
    return _segment(document, 0, len(document.title))


def text(document: Document) -> list[Segment]:
    """Return the text without the title as a single segment, or no segment if it is blank."""
    contents = document.contents
    return _segment(document, len(contents) - len(document.text), len(contents))


def _segment(document: Document, start: int, end: int) -> list[Segment]:
    characters = document.contents[start:end]
    return [Segment(document.doc_id, start, end, characters)] if characters.strip() else []
