"""How is a document read as one piece?"""

from __future__ import annotations

from birchbark.records import Document, Segment


def whole(document: Document) -> list[Segment]:
    """One segment, all of `Document.contents`; none if that is blank."""
    contents = document.contents
    if not contents.strip():
        return []
    return [Segment(document.doc_id, 0, len(contents), contents)]
