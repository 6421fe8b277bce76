"""Is a query parsed as its documentation says, and any text without loss and in linear time?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.retrieve.filters import Filter
from birchbark.retrieve.query_language import literal_query, parse_query
from growth import FASTER_THAN_SQUARE, growth

KEYWORDS = ("type", "path", "modified", "from")
Parsed = tuple[str, tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]


def parsed(text: str) -> Parsed:
    query = parse_query(text, KEYWORDS)
    return query.words, query.phrases, query.excluded, query.filters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"fast car" red', ("fast car red", ("fast car",), (), ())),
        ("“fast car” red", ("fast car red", ("fast car",), (), ())),
        ("„schnelles Auto“", ("schnelles Auto", ("schnelles Auto",), (), ())),
        ("«voiture rapide»", ("voiture rapide", ("voiture rapide",), (), ())),
        ('who said "to be"?', ("who said to be?", ("to be",), (), ())),
        ("jaguar -car", ("jaguar", (), ("car",), ())),
        ('jaguar -"fast car" -e-mail', ("jaguar", (), ("fast car", "e-mail"), ())),
        ("-car jaguar", ("jaguar", (), ("car",), ())),
        ("offer type:pdf", ("offer", (), (), (("type", "pdf"),))),
        ("Type:pdf offer", ("offer", (), (), (("type", "pdf"),))),
        ("offer -type:pdf", ("offer", (), (), (("type", "!pdf"),))),
        ("offer -type:!pdf", ("offer", (), (), (("type", "pdf"),))),
        ("a type:pdf b type:html", ("a b", (), (), (("type", "pdf|html"),))),
        ("a -type:pdf -type:html", ("a", (), (), (("type", "!pdf|html"),))),
        ("a path:d/* -path:d/o*", ("a", (), (), (("path", "d/*"), ("path", "!d/o*")))),
        ('a from:"Ann Lee" from:"a|b"', ("a", (), (), (("from", 'Ann Lee|"a|b"'),))),
        ("a before:2024-05", ("a", (), (), (("modified", "..2024-04"),))),
        ("a before:2024-03-01", ("a", (), (), (("modified", "..2024-02-29"),))),
        ("a before:2024", ("a", (), (), (("modified", "..2023"),))),
        ("a modified:2024-05", ("a", (), (), (("modified", "2024-05"),))),
        ("a modified:2024-05-01", ("a", (), (), (("modified", "2024-05-01"),))),
        ('a path:"My Docs/"*', ("a", (), (), (("path", "My Docs/*"),))),
        ('a path:"!x"*', ("a", (), (), (("path", '"!x"*'),))),
        ('a -path:"a|b"*', ("a", (), (), (("path", '!"a|b"*'),))),
        ('a path:"a..b"*', ("a", (), (), (("path", '"a..b"*'),))),
        ("a after:2024/5/1", ("a", (), (), (("modified", "2024-05-01.."),))),
        ("after:7000 a from:b", ("a", (), (), (("modified", "7000.."), ("from", "b")))),
        ("a modified:2024-03..2024-05", ("a", (), (), (("modified", "2024-03..2024-05"),))),
    ],
)  # fmt: skip
def test_operators(text: str, expected: Parsed) -> None:
    """Phrases, exclusions, filters and dates are told apart from the words that are ranked by."""
    assert parsed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "why do bees dance", "", "  two  blanks ", "line\nend", "http://example.com/a-b",
        "note: this", "state-of-the-art", "a - b", "--verbose", "C++", "-", '"', '""', '"..."',
        '-"', '5" disk', 'a "b', 'say"hello world"', '"a"b', "type:", 'type:"', 'type:""',
        "before:noon", "before:2024-13", "after:0000", "colour:red", "10:30", "it's",
        "’t is", "-(a)", "before:",
    ],
)  # fmt: skip
def test_plain_text(text: str) -> None:
    """Text without operators stays as it is, byte for byte."""
    query = parse_query(text, KEYWORDS)
    assert (query.words, query.restricted, str(query)) == (text, False, text)
    assert query == literal_query(text)


def test_fields_of_the_index() -> None:
    """Only keyword fields of the index filter, and dates need the field modified."""
    assert not parse_query("type:pdf before:2024 after:2023").restricted
    assert parse_query("before:x", ["before"]).filters == (("before", "x"),)


def test_literal() -> None:
    """Nothing in a literal query is an operator."""
    query = literal_query('-Wall "x y" type:pdf')
    assert (query.words, query.restricted) == ('-Wall "x y" type:pdf', False)


PIECES = st.sampled_from(
    [
        *'"-“”«:*!| \n\t\u3000é日_', "word", "-word", '"a b"', '-"c d"', "type:pdf", "-type:a|b",
        "..", "C++", "before:2024-05", "after:2023", 'path:"x y"',
    ]
)  # fmt: skip


@given(st.lists(PIECES).map("".join) | st.text())
def test_round_trip(text: str) -> None:
    """The parts of any text are the text, and printing and parsing a query gives the same one."""
    query = parse_query(text, KEYWORDS)
    assert str(query) == text
    assert parse_query(str(query), KEYWORDS) == query
    assert query.restricted or query.words == text


@given(st.lists(PIECES).map("".join))
def test_words_of_phrases(text: str) -> None:
    """Every phrase is among the words that are ranked by."""
    query = parse_query(text, KEYWORDS)
    assert all(" ".join(phrase.split()) in query.words for phrase in query.phrases)


def test_filters_of_quoted_values() -> None:
    """A value in quotation marks is taken as it is, also if it looks like a filter."""
    ((_, text),) = parse_query('x type:"docs/*"', KEYWORDS).filters
    assert Filter.parse("type", text).values == ("docs/*",)
    ((_, text),) = parse_query('x -type:"!a..b"', KEYWORDS).filters
    assert Filter.parse("type", text) == Filter(("!a..b",), negated=True)
    ((_, text),) = parse_query('x modified:"2024"', KEYWORDS).filters
    assert Filter.parse("modified", text) == Filter(("2024",))
    ((_, text),) = parse_query("x modified:2024", KEYWORDS).filters
    assert Filter.parse("modified", text) != Filter(("2024",))


@pytest.mark.parametrize(
    "unit", ['"', '"a', '" ', '"a "', "-", "-a ", "type:", 'type:"', "a:b:", "“", " -", '-"', "_ "]
)
def test_linear_time(unit: str) -> None:
    """A hostile query of four times the length takes about four times as long."""

    def parse(text: str) -> None:
        assert str(parse_query(text, KEYWORDS)) == text

    assert growth(parse, unit * 10_000, unit * 40_000) < FASTER_THAN_SQUARE
