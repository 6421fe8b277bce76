"""How is a whole document read as one segment?"""

from __future__ import annotations

from birchbark.records import Document, Segment


def whole(document: Document) -> list[Segment]:
    """Return `Document.contents` as a single segment, or no segment if it is blank."""
    contents = document.contents
    if not contents.strip():
        return []
    return [Segment(document.doc_id, 0, len(contents), contents)]
