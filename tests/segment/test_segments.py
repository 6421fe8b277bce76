"""Is every word of a document in some segment, and every segment where it says it is?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.records import Document, Ids, Segment
from birchbark.segment.fit import fit
from birchbark.segment.named import parse_segmenter, spell
from birchbark.segment.paragraphs import paragraphs
from birchbark.segment.sections import sections
from birchbark.segment.sentences import sentence_spans, sentences
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows

PIECES = st.sampled_from(
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
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join)
SEGMENTERS = [
    sentences,
    paragraphs,
    sections,
    whole,
    Windows(),
    Windows(3, 1),
    Windows(2, 0),
    Windows(20, 5, 10),
]


def word_spans(text: str) -> list[tuple[int, int]]:
    return [m.span() for m in re.finditer(r"\S+", text)]


def word_ids(texts: Sequence[str]) -> list[Ids]:
    return [np.array([len(word) for word in text.split()], np.int32) for text in texts]


@pytest.mark.parametrize("segmenter", SEGMENTERS)
@given(title=TEXTS, text=TEXTS)
def test_segments_cover_the_document(segmenter, title: str, text: str) -> None:  # type: ignore[no-untyped-def]
    """Every character but white space is in some segment, and segments are in order."""
    document = Document("d", {"title": title, "text": text})
    segments = segmenter(document)
    covered = {i for s in segments for i in range(s.start, s.end)}
    contents = document.contents
    left = [contents[i] for i in range(len(contents)) if i not in covered]
    in_front = title.split() and segments and segments[0].start >= len(title)
    in_front = in_front and (segmenter in (paragraphs, sections) or isinstance(segmenter, Windows))
    if in_front:  # the title is read with every window
        assert all(s.text.startswith(title) for s in segments)
        left = [contents[i] for i in range(len(title), len(contents)) if i not in covered]
    assert "".join(left).strip() == ""
    assert segments == sorted(segments, key=lambda s: s.start)
    assert all(s.text.endswith(contents[s.start : s.end]) for s in segments)


@given(text=TEXTS, room=st.integers(1, 6))
def test_fitted_segments_cover_every_token(text: str, room: int) -> None:
    """However long a sentence is, each of its tokens is in one chunk of at most `room` tokens."""
    document = Document("d", {"text": text})
    whole = sentences(document)
    pieces = [s for some in fit(whole, room, word_ids, word_spans) for s, _ in some]
    assert all(len(word_spans(p.text)) <= room for p in pieces)
    assert [w for p in pieces for w in p.text.split()] == [w for s in whole for w in s.text.split()]
    assert all(p.text == document.contents[p.start : p.end] for p in pieces)


def test_a_title_in_front_is_cut_but_not_lost() -> None:
    """Offsets of the chunks stay those of the text behind the title."""
    document = Document("d", {"title": "one two", "text": "three four five"})
    (window,) = Windows()(document)
    pieces = [s for s, _ in fit([window], 2, word_ids, word_spans)[0]]
    assert [p.text.split() for p in pieces] == [["one", "two"], ["three", "four"], ["five"]]
    assert document.contents[pieces[1].start : pieces[1].end].split() == ["three", "four"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bees dance. They tell of flowers.", ["Bees dance.", "They tell of flowers."]),
        ("Dr. Smith saw the U.S. fleet. It left.", ["Dr. Smith saw the U.S. fleet.", "It left."]),
        ("It costs 3.50 dollars. Cheap!", ["It costs 3.50 dollars.", "Cheap!"]),
        ("A heading\n\nA paragraph.", ["A heading", "A paragraph."]),
        ("List:\n- one\n- two", ["List:", "- one", "- two"]),
        ("a line that is wrapped\nby hand. Next.", ["a line that is wrapped\nby hand.", "Next."]),
        (
            "THE U.S. SAID NO. IT WAS (TIME, DEC. 28). MR. MACMILLAN AGREED.",
            ["THE U.S. SAID NO.", "IT WAS (TIME, DEC. 28).", "MR. MACMILLAN AGREED."],
        ),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences_as_people_see_them(text: str, expected: list[str]) -> None:
    """Abbreviations, numbers, lists, wrapped lines, upper-case news."""
    assert [text[start:end] for start, end in sentence_spans(text)] == expected


def test_the_title_is_a_sentence_of_its_own() -> None:
    """Even without a stop."""
    document = Document("d", {"title": "Birch canoe", "text": "It floats."})
    assert [s.text for s in sentences(document)] == ["Birch canoe", "It floats."]


@pytest.mark.parametrize("unit", ["\n", " \n", "!?", ".", ".)", "a", "a ", "Mr. ", '"'])
def test_long_runs_take_no_quadratic_time(unit: str) -> None:
    """200,000 characters of anything are cut up at once, and covered."""
    text = unit * (200_000 // len(unit))
    covered = sum(len(text[start:end].split()) for start, end in sentence_spans(text))
    assert covered >= len(text.split())
    found = paragraphs(Document("d", {"text": text}))
    assert sum(len(one.text.split()) for one in found) == len(text.split())


def test_paragraphs_as_people_see_them() -> None:
    """Blank lines part them, whatever the line ends; a short title stands in front of each."""
    text = "One line,\nand its next.\r\n \r\n\tTwo.\n\n\n\nThree. \n"
    found = [s.text for s in paragraphs(Document("d", {"text": text}))]
    assert found == ["One line,\nand its next.", "Two.", "Three."]
    titled = paragraphs(Document("d", {"title": "Bees", "text": "A.\n\nB."}))
    assert [(s.text, s.start, s.end) for s in titled] == [("Bees\nA.", 5, 7), ("Bees\nB.", 9, 11)]
    assert paragraphs(Document("d", {"title": "Bees"})) == [Segment("d", 0, 4, "Bees")]
    long_title = Document("d", {"title": "t " * 60, "text": "A."})
    assert paragraphs(long_title)[0].text.startswith("t t")


def test_windows_overlap_as_asked() -> None:
    """150 words, 50 of them shared, to the last word."""
    words = [f"w{i}" for i in range(320)]
    segments = Windows()(Document("d", {"text": " ".join(words)}))
    spans = [(s.text.split()[0], s.text.split()[-1]) for s in segments]
    assert spans == [("w0", "w149"), ("w100", "w249"), ("w200", "w319")]


def test_a_title_counts_towards_the_window() -> None:
    """147 words of text beside a title of 3; a long title is text."""
    words = [f"w{i}" for i in range(200)]
    segments = Windows()(Document("d", {"title": "a short title", "text": " ".join(words)}))
    assert [len(s.text.split()) for s in segments] == [150, 3 + 200 - 97]
    long_title = Document("d", {"title": "t " * 49 + "t", "text": " ".join(words)})
    assert Windows()(long_title)[0].text.split()[:50] == ["t"] * 50


def test_a_document_of_a_title_alone() -> None:
    """Is one window."""
    assert Windows()(Document("d", {"title": "Bees"})) == [Segment("d", 0, 4, "Bees")]
    assert Windows()(Document("d", {})) == []


def test_windows_must_move_on() -> None:
    """An overlap of the whole window would never end."""
    with pytest.raises(InputError, match="0 <= overlap < size"):
        Windows(50, 50)


@given(
    sizes=st.tuples(st.integers(1, 40), st.integers(0, 39)).filter(lambda pair: pair[1] < pair[0]),
    title=st.integers(0, 60),
    words=st.integers(1, 300),
)
def test_windows_cover_any_length_with_any_overlap(
    sizes: tuple[int, int], title: int, words: int
) -> None:
    """Each word is in a window, none is longer than asked, neighbours share what was asked."""
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
    """The one is read as text; the other is one window."""
    long_title = Document("d", {"title": "t " * 9_999 + "t", "text": "end"})
    windows = Windows()(long_title)
    assert len(windows) == 100
    assert windows[-1].text.split()[-1] == "end"
    assert [s.text for s in Windows()(Document("d", {"text": "birch"}))] == ["birch"]


def test_sections_begin_with_their_headings() -> None:
    """Markdown's, and lines with a rule below that is as long; not in code, not two rules."""
    text = """Before all.

# One #
First.
```
# no heading
```
Two
===
Second.

Three words here
--
still second

| a | b |
---------
    code
    ----
------
------
    #hash

  ### Four
Last."""
    found = [s.text for s in sections(Document("d", {"text": text}))]
    assert [piece.split("\n")[0] for piece in found] == [
        "Before all.",
        "# One #",
        "Two",
        "| a | b |",
        "### Four",
    ]
    assert found[1].endswith("```") and found[2].endswith("still second")
    windows = sections(Document("d", {"title": "Bees", "text": "A\r\n===\r\nb.\r\n# C\r\nd."}))
    assert [s.text for s in windows] == ["Bees\nA\r\n===\r\nb.", "Bees\n# C\r\nd."]
    assert [s.start for s in windows] == [5, 17]
    assert [s.text for s in sections(Document("d", {"text": "Plain."}))] == ["Plain."]


@given(TEXTS, TEXTS)
def test_title_and_text_alone(title: str, text: str) -> None:
    """Each is what the document has of it; together they are the whole."""
    document = Document("d", {"title": title, "text": text})
    for name, own in (("title", title), ("text", text)):
        segmenter = parse_segmenter(name)
        found = segmenter(document)
        assert [segment.text for segment in found] == ([own] if own.strip() else [])
        assert all(document.contents[s.start : s.end] == s.text for s in found)
        assert spell(segmenter) == name
