"""Is text split into sentences, and are code and tables split at lines?"""

from __future__ import annotations

from itertools import pairwise

import pytest

from birchbark.records import Document
from birchbark.segment.paragraphs import paragraphs
from birchbark.segment.sentences import sentence_spans, sentences

CODE = "".join(f"    values[{i}] = compute({i}, scale=2)\n" for i in range(40))


TABLE = "".join(f"item {i}     {i * 3}.50     in stock\n" for i in range(40))


PROSE = "a line of prose that goes on and on without an end, and is wrapped\n" * 40


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


def test_long_lists_are_not_cut_in_words() -> None:
    """Their words may be separated by line breaks or tabs alone."""
    for separator in ("\n", "\t"):
        text = separator.join(["honeycombs"] * 3_000)
        spans = sentence_spans(text)
        words = [word for start, end in spans for word in text[start:end].split()]
        assert words == ["honeycombs"] * 3_000
