"""Are elements found as their tags say, also in texts that are made to take long?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.collection.nyt import parse_article
from birchbark.collection.parsing.elements import attribute, elements, first_element
from birchbark.collection.parsing.markup import plain_text
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError

MANY = 300_000


def test_elements_reach_to_the_next_end_tag() -> None:
    text = "<a>1</a> <ab>no</ab> <a x='y'>2<a>3</a >4</a> <A>5</A> <a>open"
    assert [e.inner for e in elements(text, "a")] == ["1", "2<a>3"]
    assert [e.inner for e in elements(text, "a", any_case=True)] == ["1", "2<a>3", "5"]
    first = first_element(text, "ab")
    assert first
    assert text[first.start : first.end] == "<ab>no</ab>"
    assert first_element(text, "b") is None


def test_attributes() -> None:
    given = """ number = "7" my-number='8' empty="" odd='"' bare=9 Upper="x" x:lang="nl" """
    assert attribute(given, "number") == "7"
    assert attribute(given, "my-number") == "8"
    assert attribute(given, "empty") == ""
    assert attribute(given, "odd") == '"'
    assert attribute(given, "bare") == "9"
    assert attribute(given, "upper") == "x"
    assert attribute(given, "umber") is None
    assert attribute(given, "lang") is None


@pytest.mark.parametrize(
    "flood", ["<DOCNO>", "<DOCNO> " + " " * 50, "<DOCNO", "</DOCNO>", "<DOCNO a", "</DOCNO  "]
)
def test_floods_of_tags_end_soon(flood: str) -> None:
    """Their length squared would be minutes."""
    text = f"<DOCNO>1</DOCNO>{flood * MANY}"
    assert [element.inner for element in elements(text, "DOCNO")][:1] == ["1"]


@pytest.mark.parametrize("flood", ["<doc-id ", "<block class=", "<block>", "<hl1>", "id-string='"])
def test_floods_in_articles_end_soon(flood: str) -> None:
    with pytest.raises(InputError, match="no id"):
        parse_article(flood * MANY)


@pytest.mark.parametrize("flood", ["<topic number=", "<a>", "<topic number='1'><a>", "number " * 9])
def test_floods_in_topics_end_soon(flood: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(f"<topic number='1'><title>x</title>{flood * (MANY // 10)}</topic>")
    with pytest.raises(InputError, match=r"text of a topic outside its parts|topic has no title"):
        read_queries(tmp_path / "t")


@pytest.mark.parametrize("flood", ["<!--", "<![CDATA[", "<?", "<!"])
def test_floods_of_markup_that_is_not_closed_end_soon(flood: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(f"<topic number='1'>x</topic>{flood * MANY}")
    with pytest.raises(InputError, match="is not closed"):
        read_queries(tmp_path / "t")


def test_distinct_unclosed_tags_end_soon(tmp_path: Path) -> None:
    tags = "".join(f"<t{n}>" for n in range(MANY))
    (tmp_path / "t").write_text(f"<topic number='1'><title>x</title>{tags}</topic>")
    with pytest.raises(InputError, match="<t0> is not closed"):
        read_queries(tmp_path / "t")


def test_an_entity_with_thousands_of_digits_is_an_error() -> None:
    with pytest.raises(InputError, match="markup cannot be read"):
        plain_text(f"&#{'9' * 5000};")
