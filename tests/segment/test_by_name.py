"""Does each name stand for its segmenter?"""

from __future__ import annotations

import pytest
from hypothesis import given
from test_segments import TEXTS

from birchbark.records import Document
from birchbark.segment.by_name import parse_segmenter, segmenter_name


@pytest.mark.parametrize("name", ["passages", "windows", "paragraphs", "sections", "sentences"])
def test_a_very_long_word_as_title_is_not_repeated(name: str) -> None:
    """Segments would have the square of its characters, though it is a single word."""
    document = Document("d", {"title": "t" * 2_000, "text": "A word.\n\n" * 500})
    segments = parse_segmenter(name)(document)
    assert sum(len(segment.text) for segment in segments) < 2 * len(document.contents)


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
