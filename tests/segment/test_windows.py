"""Do windows overlap as asked, and cover each word?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.records import Document, Segment
from birchbark.segment.windows import Windows


def test_windows_overlap() -> None:
    """150 words, 50 of them shared, to the last word."""
    words = [f"w{i}" for i in range(320)]
    segments = Windows()(Document("d", {"text": " ".join(words)}))
    spans = [(s.text.split()[0], s.text.split()[-1]) for s in segments]
    assert spans == [("w0", "w149"), ("w100", "w249"), ("w200", "w319")]


def test_a_title_counts_towards_the_window() -> None:
    """A title of 3 words leaves 147 for the text; a long title is part of the text."""
    words = [f"w{i}" for i in range(200)]
    segments = Windows()(Document("d", {"title": "a short title", "text": " ".join(words)}))
    assert [len(s.text.split()) for s in segments] == [150, 3 + 200 - 97]
    long_title = Document("d", {"title": "t " * 49 + "t", "text": " ".join(words)})
    assert Windows()(long_title)[0].text.split()[:50] == ["t"] * 50


def test_a_document_of_a_title_alone() -> None:
    """It is one window."""
    assert Windows()(Document("d", {"title": "Bees"})) == [Segment("d", 0, 4, "Bees")]
    assert Windows()(Document("d", {})) == []


def test_windows_must_advance() -> None:
    """An overlap of the window size would never end."""
    with pytest.raises(InputError, match="window overlap is out of range: expected below the size"):
        Windows(50, 50)


@given(
    sizes=st.tuples(st.integers(1, 40), st.integers(0, 39)).filter(lambda pair: pair[1] < pair[0]),
    title=st.integers(0, 60),
    words=st.integers(1, 300),
)
def test_windows_cover_any_length_with_any_overlap(
    sizes: tuple[int, int], title: int, words: int
) -> None:
    """Each word is in a window, no window is too long, and neighbours share `overlap` words."""
    size, overlap = sizes
    front = [f"t{n}" for n in range(title)]
    text = [f"w{n}" for n in range(words)]
    document = Document("d", {"title": " ".join(front), "text": " ".join(text)})
    windows = [s.text.split() for s in Windows(size, overlap)(document)]
    assert all(len(window) <= size for window in windows)
    assert {word for window in windows for word in window} == {*front, *text}
    in_front = 0 < title < min(50, size - overlap)
    own = [window[title:] if in_front else window for window in windows]
    for window, after in pairwise(own):
        assert window[len(window) - overlap :] == after[:overlap]
        assert len(after) > overlap  # no window without a word of its own


def test_a_title_of_ten_thousand_words_and_a_document_of_one() -> None:
    """The title is read as text; the document is one window."""
    long_title = Document("d", {"title": "t " * 9_999 + "t", "text": "end"})
    windows = Windows()(long_title)
    assert len(windows) == 100
    assert windows[-1].text.split()[-1] == "end"
    assert [s.text for s in Windows()(Document("d", {"text": "birch"}))] == ["birch"]
