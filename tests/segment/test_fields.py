"""Is a single field of a document one segment?"""

from __future__ import annotations

from hypothesis import given
from test_segments import TEXTS

from birchbark.records import Document
from birchbark.segment.by_name import parse_segmenter, segmenter_name


@given(TEXTS, TEXTS)
def test_title_and_text_alone(title: str, text: str) -> None:
    """Each is one segment with correct offsets, and its name round-trips."""
    document = Document("d", {"title": title, "text": text})
    for name, field in (("title", title), ("text", text)):
        segmenter = parse_segmenter(name)
        segments = segmenter(document)
        assert [segment.text for segment in segments] == ([field] if field.strip() else [])
        assert all(document.contents[s.start : s.end] == s.text for s in segments)
        assert segmenter_name(segmenter) == name
