"""Do words that look alike match?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.records import Document
from birchbark.retrieve.term_overlap import TermIndex
from birchbark.text.analyzer import NAMES, WORDPIECE, analyzer
from birchbark.text.normal_form import LONGEST, composed, normal_form, usual_letters
from growth import FASTER_THAN_SQUARE, growth

ALIKE = [
    ("Cafe\u0301", "café"),
    ("café", "cafe\u0301"),
    ("co\u00adop\u00ader\u00ada\u00adtion", "cooperation"),
    ("a \ufb01replace", "fireplace"),
    ("O\u2019Brien", "O'Brien"),
    ("can\u2019t", "can't"),
    ("Attention\u202f!", "attention"),
    ("Ｆｕｌｌ　ｗｉｄｔｈ", "width"),
    ("H\u2082O", "H2O"),
    ("zero\u200bwidth", "width"),
    ("word\u2060joiner", "wordjoiner"),
    ("\ufeffmark", "mark"),
    ("left\u200eto\u200fright", "lefttoright"),
    ("Hawai\u02bbi", "Hawai'i"),
    ("O\u00b4Brien", "O'Brien"),
    ("D\u2032Arcy", "D'Arcy"),
    ("Xİzmir", "Xizmir"),
    ("Но\u0301вгород", "Новгород"),
    ("\u2f08\u2f2f", "人工"),
]


@pytest.mark.parametrize("name", [n for n in NAMES if n not in WORDPIECE])
@pytest.mark.parametrize(("text", "query"), ALIKE)
def test_words_that_look_alike_have_the_same_terms(name: str, text: str, query: str) -> None:
    """This holds for every analyzer."""
    terms = analyzer(name).terms
    assert set(terms(query)) <= set(terms(text))


@given(st.text(st.sampled_from("aé\u0301\u0316\u0323ก่x"), max_size=200))
def test_many_marks_are_composed_or_kept(text: str) -> None:
    """No character is lost, and what is composed stays so."""
    assert composed(composed(text)) == composed(text)
    assert normalize("NFD", composed(text)) == normalize("NFD", text)


def test_the_time_grows_with_the_number_of_marks() -> None:
    """Marks that have to be sorted count, too."""
    short, long = ("a" + "\u0301" * size + "\u0316" * size for size in (10_000, 40_000))
    assert growth(normal_form, short, long) < FASTER_THAN_SQUARE


@given(st.text())
def test_the_normal_form_is_stable(text: str) -> None:
    """Applied again it changes nothing, and a text that models read keeps its ASCII."""
    form = normal_form(text)
    assert normal_form(form) == form
    assert usual_letters(usual_letters(text)) == usual_letters(text)


@pytest.mark.parametrize("form", [normal_form, usual_letters])
def test_no_letter_becomes_a_phrase(form: Callable[[str], str]) -> None:
    """ﷺ stands for 18 letters; a file of some bytes, unpacked, would have millions."""
    longest = max(map(chr, range(0xA0, 0x20000)), key=lambda character: len(form(character)))
    assert len(form(longest)) == LONGEST
    assert form("Ⅷ ﷺ") == "VIII ﷺ"


def test_a_superscript_stays_outside_the_word_before() -> None:
    """It may be the mark of a footnote; other numbers and signs are not spelt out either."""
    assert analyzer("plain").terms("bark¹ 10² Windows™ ½ …") == ["bark", "10", "windows", "™"]


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("a \ufb01replace, lit", "fireplace", "\ufb01replace"),
        (
            "the co\u00adop\u00ader\u00ada\u00adtion of all",
            "cooperation",
            "co\u00adop\u00ader\u00ada\u00adtion",
        ),
        ("in Cafe\u0301s", "café", "Cafe\u0301s"),
        ("one Attention\u202f! two", "attention", "Attention"),
    ],
)
def test_marks_are_where_the_original_text_has_the_word(text: str, query: str, marked: str) -> None:
    """Offsets count the characters of the text as it is stored."""

    class Store:
        def documents(self, ids: object) -> list[Document]:
            raise NotImplementedError

    [(begin, end)] = TermIndex(Store()).overlap(query).marks(text)  # type: ignore[arg-type]
    assert text[begin:end] == marked


def test_a_filter_finds_a_name_that_a_file_system_has_decomposed(tmp_path: Path) -> None:
    """macOS decomposes names; a decomposed filter finds a composed name, too."""
    documents = [
        Document("a", {"text": "birch", "path": "zoe\u0308.txt"}),
        Document("b", {"text": "birch", "path": "zoë2.txt"}),
    ]
    index = build_index(documents, tmp_path / "i", Schema(keywords=("path",)))
    for written in ("zoë*", "zoe\u0308*"):
        assert found(index, written) == {"a", "b"}
    assert found(index, "zoë.txt") == {"a"}


def found(index: Index, path: str) -> set[str]:
    """Return the ids of the documents that a filter on the path allows."""
    from birchbark.retrieve.filters import Filter

    field = index.parts[0].fields[index.filter_number("path")]
    allowed = Filter.parse("path", path).allowed(field)
    return {index.parts[0].doc_ids[n] for n in range(len(allowed)) if allowed[n]}
