"""Does each analyzer turn a token into exactly the documented terms?"""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.text.analyzer import (
    MAX_TERM_LENGTH,
    NORMALISERS,
    PART_STEP,
    analyzer,
    english,
    plain,
    porter,
)
from birchbark.text.parts import parts
from birchbark.text.stop_words import LUCENE

NAMES = st.sampled_from(sorted(NORMALISERS))
TEXT = st.text() | st.text("aBs1_.' ’\nİßéЖ日🐝\ud800") | st.sampled_from(sorted(LUCENE))
TOKEN = st.text("abcdegilnorsty", min_size=1, max_size=12)


@given(NAMES, TEXT)
def test_terms_are_the_normalised_tokens(name: str, text: str) -> None:
    """An analyzer applies its two steps one after the other."""
    chosen = analyzer(name)
    expected = [term for token in chosen.tokens(text) for term in chosen.normalise(token)]
    assert chosen.terms(text) == expected


@given(NAMES, TEXT, TEXT)
def test_terms_of_a_text_are_those_of_its_parts(name: str, left: str, right: str) -> None:
    """Each token is normalised alone, so that results can be cached."""
    terms = analyzer(name).terms
    assert terms(f"{left} {right}") == terms(left) + terms(right)


@given(NAMES, TEXT)
def test_terms_are_short_and_not_empty(name: str, text: str) -> None:
    """No term is empty, longer than Lucene's limit, or in upper case."""
    for term in analyzer(name).terms(text):
        assert 0 < len(term) <= MAX_TERM_LENGTH
        assert term.lower() == term


@given(NAMES, st.text("aBcs'-. ", max_size=30))
def test_case_does_not_matter(name: str, text: str) -> None:
    """Upper-case and lower-case queries have the same terms."""
    assert analyzer(name).terms(text.upper()) == analyzer(name).terms(text.lower())


@given(st.text(min_size=1, max_size=600))
def test_plain_lowercases_and_splits(token: str) -> None:
    """The terms joined are the lowercase token; all but the last have the maximal length."""
    pieces = plain(token)
    assert "".join(pieces) == token.lower()
    assert {len(piece) for piece in pieces[:-1]} <= {MAX_TERM_LENGTH}


@given(TOKEN)
def test_english_is_porter_without_stop_words(token: str) -> None:
    """Without a possessive, there is no other difference."""
    assert english(token) == (() if token in LUCENE else porter(token))


@given(TOKEN, st.sampled_from(["'s", "'S", "’s", "’S", "＇s", "＇S"]))
def test_english_removes_the_possessive(token: str, ending: str) -> None:
    """Its apostrophe may be straight, curly or full-width."""
    terms = analyzer("english").terms
    assert terms(token + ending) == terms(token)


@given(st.text("abcdegilnorsty", min_size=1, max_size=2))
def test_short_words_are_not_stemmed(token: str) -> None:
    """Porter's own programs do the same."""
    assert porter(token) == (token,)


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("ties", "ti"),
        ("cats", "cat"),
        ("feed", "feed"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("motoring", "motor"),
        ("sing", "sing"),
        ("conflated", "conflat"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("filing", "file"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("relational", "relat"),
        ("conditional", "condit"),
        ("vietnamization", "vietnam"),
        ("triplicate", "triplic"),
        ("adjustment", "adjust"),
        ("probate", "probat"),
        ("controlling", "control"),
        ("generalizations", "gener"),
        ("oscillators", "oscil"),
        ("is", "is"),
        ("as", "as"),
    ],
)
def test_stems_are_those_of_porters_paper(word: str, stem: str) -> None:
    """The examples are from "An algorithm for suffix stripping" (1980)."""
    assert porter(word) == porter(word.upper()) == (stem,)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", "the ponies and the bridge's relational arches weren't in u.s.a"),
        ("porter", "the poni and the bridge' relat arch weren't in u.s.a"),
        ("unstemmed", "ponies bridge relational arches weren't u.s.a"),
        ("english", "poni bridg relat arch weren't u.s.a"),
    ],
)
def test_analyzers_differ_as_documented(name: str, expected: str) -> None:
    """The same sentence goes through all four."""
    text = "The ponies and the bridge's relational arches weren't in U.S.A."
    assert analyzer(name).terms(text) == expected.split()


def test_the_possessive_is_removed_before_stop_words() -> None:
    """ "It's" becomes "It", which is a stop word."""
    assert analyzer("english").terms("It's that's The's boss's s's") == ["boss", "s"]


def test_terms_are_repeated_in_order() -> None:
    """Counts and positions can be derived from them."""
    assert analyzer("plain").terms("b a B_1 a") == ["b", "a", "b_1", "a"]


def test_long_tokens_are_split_before_stemming() -> None:
    """255 characters make one term, 256 make two."""
    assert plain("A" * 255) == ("a" * 255,)
    assert plain("A" * 256) == ("a" * 255, "a")
    assert porter("a" * 252 + "ing" + "ponies") == ("a" * 252, "poni")
    assert english("a" * 255 + "the") == ("a" * 255,)


def test_parts_of_very_long_tokens_are_found_in_short_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each part is found, those that a step cuts as two."""
    seen = list[int]()

    def counted(word: str) -> list[str]:
        seen.append(len(word))
        return parts(word)

    monkeypatch.setattr("birchbark.text.analyzer.parts", counted)
    token = "canoe_birch_" * 4_000
    terms = Counter(analyzer("porter+parts").terms(token))
    assert max(seen) == PART_STEP
    cut = (len(token) - 1) // PART_STEP
    assert terms["cano"] + terms["birch"] >= 8_000 - cut
    assert set(porter(token)) <= set(terms)


def test_other_scripts_pass_through_the_stemmer() -> None:
    """Porter's stemmer leaves other scripts unchanged."""
    assert analyzer("english").terms("Привет 日本 テスト") == ["привет", "日", "本", "テスト"]


@pytest.mark.parametrize("name", ["", "English", "klingon"])
def test_the_error_for_an_unknown_analyzer_lists_the_names(name: str) -> None:
    """The list lets the user choose one."""
    message = re.escape(
        f"unknown analyzer {name!r}: expected one of english, unstemmed, porter, plain, wordpiece"
    )
    with pytest.raises(InputError, match=message):
        analyzer(name)


@pytest.mark.parametrize("name", sorted(NORMALISERS))
def test_an_analyzer_knows_its_name(name: str) -> None:
    """The index stores it, and queries are analysed in the same way."""
    assert analyzer(name).name == name
    assert analyzer(name) == analyzer(name)
