"""Is every word of a document in some segment, with correct offsets?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.records import Document
from birchbark.segment.paragraphs import paragraphs
from birchbark.segment.passages import Passages
from birchbark.segment.sections import sections
from birchbark.segment.sentences import sentences
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows

PARTS = st.sampled_from(
    [
        "Bees dance. ",
        "U.S. ",
        "e.g. ",
        "\n\n",
        "\r\n",
        "...",
        "!?",
        "- item\n",
        "1. one\n",
        " ",
        "é",
        "x",
        "“Oh!” ",
        "\t",
        "日本。",
        ">>> f(1)\n",
        "\x00",
        "\u2028",
        "a" * 50,
        "    x = [a, b]\n" * 30,
    ]
)
TEXTS = st.lists(PARTS, max_size=30).map("".join)
SEGMENTERS = [
    sentences,
    paragraphs,
    sections,
    whole,
    Windows(),
    Windows(3, 1),
    Windows(2, 0),
    Windows(20, 5),
    Passages(),
    Passages(6),
    Passages(1),
]


@pytest.mark.parametrize("segmenter", SEGMENTERS)
@given(title=TEXTS, text=TEXTS)
def test_segments_cover_the_document(segmenter, title: str, text: str) -> None:  # type: ignore[no-untyped-def]
    """Every character except white space is in some segment, and segments are in order."""
    document = Document("d", {"title": title, "text": text})
    segments = segmenter(document)
    covered = {i for s in segments for i in range(s.start, s.end)}
    contents = document.contents
    left = [contents[i] for i in range(len(contents)) if i not in covered]
    in_front = title.split() and segments and segments[0].start >= len(title)
    titled = isinstance(segmenter, (Windows, Passages)) or segmenter in (paragraphs, sections)
    in_front = in_front and titled
    if in_front:  # the title is read with every window
        assert all(s.text.startswith(title) for s in segments)
        left = [contents[i] for i in range(len(title), len(contents)) if i not in covered]
    assert "".join(left).strip() == ""
    assert segments == sorted(segments, key=lambda s: s.start)
    assert all(s.text.endswith(contents[s.start : s.end]) for s in segments)
