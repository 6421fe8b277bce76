"""How is one part of a document read alone: its title, or its text?"""

from __future__ import annotations

from birchbark.records import Document, Segment


def title(document: Document) -> list[Segment]:
    """One segment, the title; none if it is blank."""
    return _part(document, 0, len(document.title))


def text(document: Document) -> list[Segment]:
    """One segment, the text without the title; none if it is blank."""
    contents = document.contents
    return _part(document, len(contents) - len(document.text), len(contents))


def _part(document: Document, start: int, end: int) -> list[Segment]:
    words = document.contents[start:end]
    return [Segment(document.doc_id, start, end, words)] if words.strip() else []
