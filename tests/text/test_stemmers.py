"""Are words of other languages turned into terms that other forms of them share?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.text.analyzer import CJK, MAX_TERM_LENGTH, analyzer
from birchbark.text.languages import LANGUAGES, character_pairs
from birchbark.text.words import words

TEXT = st.text() | st.text("aBs1_.' ’\nİIıßéЖ日本カー한국🐝\ud800")
NAMES = st.sampled_from([*LANGUAGES, CJK])


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("german", "die Häuser", "das Haus"),
        ("french", "les avions", "L’avion"),
        ("italian", "le acque dell'isola", "acqua, isole"),
        ("catalan", "l'home", "els homes"),
        ("spanish", "las bibliotecas", "una biblioteca"),
        ("russian", "новые книги", "новая книга"),
        ("greek", "τα σπίτια", "το ΣΠΊΤΙ"),
        ("turkish", "ışıklar", "IŞIK"),
        ("finnish", "talossa", "talo"),
        ("arabic", "الكتاب", "كتاب"),
        ("hindi", "किताबें", "किताब"),
        ("cjk", "東京タワー", "大東京"),
        ("cjk", "犬は走る", "犬"),
        ("cjk", "ＡＢＣ", "abc"),
        ("cjk", "한국어", "한국"),
    ],
)
def test_forms_of_a_word_share_a_term(language: str, one: str, other: str) -> None:
    """Stems are equal, and so is a pair of characters."""
    terms = analyzer(language).terms
    assert set(terms(one)) & set(terms(other))


def test_character_pairs() -> None:
    """Pairs overlap; single Chinese characters and other words are tokens by themselves."""
    assert character_pairs("東京都へ iPhone 14を買う") == [
        *("東", "東京", "京", "京都", "都", "都へ"),
        *("iPhone", "14"),
        *("を買", "買", "買う"),
    ]
    assert character_pairs("ｶﾞｲﾄﾞ") == character_pairs("ガイド") == ["ガイ", "イド"]
    assert character_pairs("犬 and 猫") == ["犬", "and", "猫"]


@given(st.text("aBs1_.' \né🐝"))
def test_text_in_other_scripts_is_split_into_words(text: str) -> None:
    """Without Chinese, Japanese and Korean characters, tokens are words."""
    assert character_pairs(text) == words(text)


@given(NAMES, TEXT, TEXT)
def test_terms(name: str, left: str, right: str) -> None:
    """They are short and not empty, and those of a text are those of its parts."""
    terms = analyzer(name).terms
    assert terms(f"{left} {right}") == terms(left) + terms(right)
    assert all(0 < len(term) <= MAX_TERM_LENGTH for term in terms(left))


def test_words_that_are_longer_in_lower_case() -> None:
    """They are split, too."""
    assert all(len(term) <= MAX_TERM_LENGTH for term in analyzer("german").terms("İ" * 255))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_a_stemmer(language: str) -> None:
    """The installed PyStemmer knows them all."""
    assert analyzer(language).terms("a word")
