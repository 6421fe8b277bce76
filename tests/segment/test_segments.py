"""Is every word of a document in some segment, with correct offsets?"""

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
from birchbark.segment import split_long as split_long_module
from birchbark.segment.by_name import parse_segmenter, segmenter_name
from birchbark.segment.paragraphs import paragraphs
from birchbark.segment.passages import Passages
from birchbark.segment.sections import sections
from birchbark.segment.sentences import sentence_spans, sentences
from birchbark.segment.split_long import split_long
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
    Windows(20, 5, 10),
    Passages(),
    Passages(6),
    Passages(1),
]


def word_spans(text: str) -> list[tuple[int, int]]:
    return [m.span() for m in re.finditer(r"\S+", text)]


def word_ids(texts: Sequence[str]) -> list[Ids]:
    return [np.array([len(word) for word in text.split()], np.int32) for text in texts]


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


@given(text=TEXTS, token_budget=st.integers(1, 6))
def test_chunks_cover_every_token(text: str, token_budget: int) -> None:
    """Each token of a long sentence is in a chunk of at most `token_budget` tokens."""
    document = Document("d", {"text": text})
    segments = sentences(document)
    fitted = split_long(segments, token_budget, word_ids, word_spans)
    chunks = [chunk for of_segment in fitted for chunk, _ in of_segment]
    assert all(len(word_spans(p.text)) <= token_budget for p in chunks)
    words = [word for segment in segments for word in segment.text.split()]
    assert [word for chunk in chunks for word in chunk.text.split()] == words
    assert all(p.text == document.contents[p.start : p.end] for p in chunks)


def test_many_segments_are_encoded_in_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is being encoded needs much memory; the chunks are the same."""
    segments = sentences(Document("d", {"text": "Bees dance. " * 40 + "one two three four five."}))
    whole = split_long(segments, 3, word_ids, word_spans)
    calls = []

    def encode(texts: Sequence[str]) -> list[Ids]:
        calls.append(sum(map(len, texts)))
        return word_ids(texts)

    monkeypatch.setattr(split_long_module, "AT_ONCE", 100)
    fitted = split_long(segments, 3, encode, word_spans)
    assert [[chunk for chunk, _ in some] for some in fitted] == [
        [chunk for chunk, _ in some] for some in whole
    ]
    assert 4 < len(calls) < len(segments)
    assert max(calls) < 130


def test_a_prepended_title_is_split_but_not_lost() -> None:
    """The offsets of chunks are those of the text after the title."""
    document = Document("d", {"title": "one two", "text": "three four five"})
    (window,) = Windows()(document)
    chunks = [s for s, _ in split_long([window], 2, word_ids, word_spans)[0]]
    assert [p.text.split() for p in chunks] == [["one", "two"], ["three", "four"], ["five"]]
    assert document.contents[chunks[1].start : chunks[1].end].split() == ["three", "four"]


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
        ("東京は首都です。人口は？「多い。」", ["東京は首都です。", "人口は？", "「多い。」"]),
        ("पहला वाक्य। दूसरा वाक्य।", ["पहला वाक्य।", "दूसरा वाक्य।"]),
        ("هل هذا صحيح؟ نعم.", ["هل هذا صحيح؟", "نعم."]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    """Abbreviations, numbers, lists, wrapped lines, upper-case news."""
    assert [text[start:end] for start, end in sentence_spans(text)] == expected


CODE = "".join(f"    values[{i}] = compute({i}, scale=2)\n" for i in range(40))
TABLE = "".join(f"item {i}     {i * 3}.50     in stock\n" for i in range(40))
PROSE = "a line of prose that goes on and on without an end, and is wrapped\n" * 40


@pytest.mark.parametrize("text", [CODE, TABLE, "x" * 500 + "\n" + CODE])
def test_code_and_tables_are_split_at_lines(text: str) -> None:
    """Each chunk is as many lines as fit into 300 characters, or one longer line."""
    chunks = [text[start:end] for start, end in sentence_spans(text)]
    lines = [line.strip() for line in text.splitlines()]
    assert [line.strip() for chunk in chunks for line in chunk.split("\n")] == lines
    assert all(len(chunk) <= 300 or "\n" not in chunk for chunk in chunks)
    full = [a + b for a, b in pairwise(map(len, chunks)) if a + b < 300]
    assert len(full) <= 1


@pytest.mark.parametrize("text", [PROSE, "    return [x]\n" * 5, CODE.replace("\n", " ")])
def test_wrapped_prose_and_short_code_stay_whole(text: str) -> None:
    """A single line stays whole, too, however long it is."""
    assert len(sentence_spans(text)) == 1


def test_the_title_is_a_sentence_of_its_own() -> None:
    """It is one even without a full stop."""
    document = Document("d", {"title": "Birch canoe", "text": "It floats."})
    assert [s.text for s in sentences(document)] == ["Birch canoe", "It floats."]


@pytest.mark.parametrize("unit", ["\n", " \n", "!?", ".", ".)", "a", "a ", "Mr. ", '"'])
def test_long_runs_take_no_quadratic_time(unit: str) -> None:
    """200,000 equal characters are split quickly, and covered."""
    text = unit * (200_000 // len(unit))
    covered = sum(len(text[start:end].split()) for start, end in sentence_spans(text))
    assert covered >= len(text.split())
    segments = paragraphs(Document("d", {"text": text}))
    assert sum(len(segment.text.split()) for segment in segments) == len(text.split())


def test_paragraphs() -> None:
    """Blank lines separate them, with any line breaks; a short title is prepended to each."""
    text = "One line,\nand its next.\r\n \r\n\tTwo.\n\n\n\nThree. \n"
    texts = [s.text for s in paragraphs(Document("d", {"text": text}))]
    assert texts == ["One line,\nand its next.", "Two.", "Three."]
    titled = paragraphs(Document("d", {"title": "Bees", "text": "A.\n\nB."}))
    assert [(s.text, s.start, s.end) for s in titled] == [("Bees\nA.", 5, 7), ("Bees\nB.", 9, 11)]
    assert paragraphs(Document("d", {"title": "Bees"})) == [Segment("d", 0, 4, "Bees")]
    long_title = Document("d", {"title": "t " * 60, "text": "A."})
    assert paragraphs(long_title)[0].text.startswith("t t")


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


@pytest.mark.parametrize("name", ["passages", "windows", "paragraphs", "sections", "sentences"])
def test_a_very_long_word_as_title_is_not_repeated(name: str) -> None:
    """Segments would have the square of its characters, though it is a single word."""
    document = Document("d", {"title": "t" * 2_000, "text": "A word.\n\n" * 500})
    segments = parse_segmenter(name)(document)
    assert sum(len(segment.text) for segment in segments) < 2 * len(document.contents)


def test_a_document_of_a_title_alone() -> None:
    """It is one window."""
    assert Windows()(Document("d", {"title": "Bees"})) == [Segment("d", 0, 4, "Bees")]
    assert Windows()(Document("d", {})) == []


def test_windows_must_advance() -> None:
    """An overlap of the window size would never end."""
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


def test_sections_begin_with_their_headings() -> None:
    """Headings of Markdown and underlined headings, but not in code and not between rules."""
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
    texts = [s.text for s in sections(Document("d", {"text": text}))]
    assert [text.split("\n")[0] for text in texts] == [
        "Before all.",
        "# One #",
        "Two",
        "| a | b |",
        "### Four",
    ]
    assert texts[1].endswith("```") and texts[2].endswith("still second")
    windows = sections(Document("d", {"title": "Bees", "text": "A\r\n===\r\nb.\r\n# C\r\nd."}))
    assert [s.text for s in windows] == ["Bees\nA\r\n===\r\nb.", "Bees\n# C\r\nd."]
    assert [s.start for s in windows] == [5, 17]
    assert [s.text for s in sections(Document("d", {"text": "Plain."}))] == ["Plain."]


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


@given(text=TEXTS, size=st.integers(1, 12))
def test_passages_are_whole_sentences(text: str, size: int) -> None:
    """A passage ends where its next sentence would exceed the size; sentences are never divided."""
    document = Document("d", {"text": text})

    def count(sentence: str) -> int:  # every character of these texts' Japanese is a word
        return len(re.findall(r"[日本。]|[^\s日本。]+", sentence))

    split, found = sentences(document), Passages(size)(document)
    assert {p.start for p in found} <= {s.start for s in split}
    assert {p.end for p in found} <= {s.end for s in split}
    for passage in found:
        inside = [s for s in split if passage.start <= s.start < passage.end]
        words = sum(count(s.text) for s in inside)
        following = [s for s in split if s.start >= passage.end][:1]
        assert words <= size or len(inside) == 1
        assert all(words + count(s.text) > size for s in following)


def test_a_short_text_is_one_passage_with_its_title() -> None:
    """The title counts towards the size, and is read with each passage of a longer text."""
    fields = {"title": "Bees", "text": "They dance. They fly far. They sting."}
    assert Passages(8)(Document("d", fields)) == [Segment("d", 5, 42, "Bees\n" + fields["text"])]
    assert [(p.text, p.start, p.end) for p in Passages(6)(Document("d", fields))] == [
        ("Bees\nThey dance. They fly far.", 5, 30),
        ("Bees\nThey sting.", 31, 42),
    ]
    long_title = {"title": "one two three four", "text": "They dance."}
    assert [p.text for p in Passages(6)(Document("d", long_title))] == [
        "one two three four\nThey dance."
    ]
    assert [p.text for p in Passages(7)(Document("d", {"title": "Bees"}))] == ["Bees"]
    japanese = Passages(8)(Document("d", {"title": "日本", "text": "日本。" * 4}))
    assert [p.text for p in japanese] == ["日本\n日本。日本。"] * 2
    with pytest.raises(InputError, match="passage size is out of range: expected 1 or more"):
        Passages(0)
