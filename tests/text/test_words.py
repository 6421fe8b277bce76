"""Are words those of Unicode and Lucene, in every script?"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.text import languages, wordpiece
from birchbark.text.languages import _character_pairs
from birchbark.text.normal_form import normal_form
from birchbark.text.wordpiece import WordPieces
from birchbark.text.words import _ASCII, PIECE, _unicode, pieces, placed_words, words

ASCII = st.text(st.characters(max_codepoint=127)) | st.text("aB1_.,:;' -")
SCRIPTS = "aé1_.:,;'’\"·- \n\u0301\u200d\ufe0fЖא日の゛テーไ한🐝👩🏽©🇩½²\ud800"
# But for half-width voice marks, and ideographs that are not Han (a test of their own).
LETTERS = st.characters(max_codepoint=0x16FFF, exclude_characters="\uff9e\uff9f\u3006")
ANY = st.text() | st.text(SCRIPTS)


@given(ASCII)
def test_the_fast_path_for_ascii_finds_the_same_words(text: str) -> None:
    """Both patterns give the same words."""
    found = [[w for w in p.findall(text) if w.strip("_")] for p in (_ASCII, _unicode())]
    assert found[0] == found[1] == words(text)


@given(ANY | st.lists(ANY | ASCII).map(" ".join))
def test_splitting_at_blanks_finds_the_same_words(text: str) -> None:
    """The fast path gives the words of Unicode's rule over the normal form of the whole text."""
    assert words(text) == [w for w in _unicode().findall(normal_form(text)) if w.strip("_")]


@given(ANY | st.lists(ANY | ASCII).map(" ".join) | st.text("eﬁ\u0301\u00adｶﾞ각ᄀ ᆨ₂²’"))
def test_words_are_found_where_they_are(text: str) -> None:
    """A place has the word itself, read again; places are in order, and words those of `words`."""
    places = placed_words(text)
    assert [word for word, _, _ in places] == words(text)
    assert [begin for _, begin, _ in places] == sorted(begin for _, begin, _ in places)
    for word, begin, end in places:
        assert word in normal_form(text[begin:end])


@given(ANY | st.lists(ANY | ASCII).map("-".join), st.integers(1, 9))
def test_pieces_have_the_words_of_the_text(text: str, size: int) -> None:
    """No character is lost, and no word is cut or joined, however small the pieces are."""
    found = [*pieces(text, size)]
    assert "".join(found) == text
    assert [word for piece in found for word in words(piece)] == words(text)


@given(ANY | st.lists(ANY | ASCII).map("-".join), st.integers(1, 9))
def test_pieces_have_the_tokens_of_the_text(text: str, size: int) -> None:
    """This holds for the analyzers that split texts by rules of their own, too."""
    # BERT joins words between which there is but a page break, and refuses lone surrogates.
    text = re.sub("[\x0b\x0c\ud800]", "?", text)
    wordpiece = WordPieces(["[UNK]"])
    for tokens in (_character_pairs, wordpiece._tokens):
        assert [token for piece in pieces(text, size) for token in tokens(piece)] == tokens(text)


def test_other_analyzers_split_texts_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """While they split one, no other thread runs."""
    text, lengths = "白樺 bark é\n" * 20_000, list[int]()

    def normal(text: str) -> str:
        lengths.append(len(text))
        return normal_form(text)

    for module in (languages, wordpiece):
        monkeypatch.setattr(module, "normal_form", normal)
    for tokens in (languages.character_pairs, WordPieces(["[UNK]"]).tokens):
        lengths.clear()
        assert len(tokens(text)) == 20_000 * (5 if tokens == languages.character_pairs else 4)
        assert sum(lengths) == len(text)
        assert max(lengths) < PIECE + 20


def test_pieces_are_short() -> None:
    """They are short even if a text has no place to cut it."""
    assert max(map(len, pieces("é," * 3 * PIECE))) == 2 * PIECE


@given(st.text(LETTERS) | st.text(SCRIPTS))
def test_no_letter_or_digit_is_lost(text: str) -> None:
    """Letters and digits of every script are in exactly one word."""
    kept = re.sub(r"[\W_]", "", "".join(words(text)))
    assert [c for c in normal_form(text) if c.isalpha() or c.isdecimal()] == [
        c for c in kept if c.isalpha() or c.isdecimal()
    ]


@given(ANY, ANY, st.sampled_from([" ", "\n", "\t", " - ", "!"]))
def test_white_space_ends_every_word(left: str, right: str, between: str) -> None:
    """Text can be split at blanks, and each part tokenised alone."""
    assert words(f"{left}{between}{right}") == words(left) + words(right)


@given(ANY)
def test_a_word_is_one_word(text: str) -> None:
    """Tokenising a word again returns the word."""
    for word in words(text):
        assert words(word) == [word]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n.,;", []),
        ("The birch-bark canoe.", ["The", "birch", "bark", "canoe"]),
        ("don't 'quoted' dogs'", ["don't", "quoted", "dogs"]),
        ("rock''n roll", ["rock", "n", "roll"]),
        ("U.S.A. and U.S.A", ["U.S.A", "and", "U.S.A"]),
        ("a:b e.g. x..y", ["a:b", "e.g", "x", "y"]),
        ("3.14 1,000;5 1'000 10:30", ["3.14", "1,000;5", "1'000", "10", "30"]),
        ("v1.2 1.b a.1 B2B", ["v1.2", "1", "b", "a", "1", "B2B"]),
        ("a_b __init__ _ __ _1", ["a_b", "__init__", "_1"]),
        ("http://a.org/b?c=d", ["http", "a.org", "b", "c", "d"]),
        ("me@site.com C++ C#", ["me", "site.com", "C", "C"]),
        ("café’s naïve", ["café's", "naïve"]),
        ("cafe\u0301 x\u0308y", ["café", "ẍy"]),
        ("soft\u00adhyphen", ["softhyphen"]),
        ("l·l Straße", ["l·l", "Straße"]),
        ("日本語", ["日", "本", "語"]),
        ("ひらがな", ["ひ", "ら", "が", "な"]),
        ("テスト テープ", ["テスト", "テープ"]),
        ("日本のテスト", ["日", "本", "の", "テスト"]),
        ("한국어 검색", ["한국어", "검색"]),
        ("ไทย ภาษา", ["ไทย", "ภาษา"]),
        ("ພາສາ ខ្មែរ", ["ພາສາ", "ខ្មែរ"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Привет, мир", ["Привет", "мир"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("שָׁלוֹם", ["שָׁלוֹם"]),
        ("١٢٫٥ １２", ["١٢٫٥", "12"]),
        ("bees 🐝🐝 fly", ["bees", "🐝", "🐝", "fly"]),
        ("👩\u200d👩\u200d👧x", ["👩", "👩", "👧", "x"]),
        ("👍🏽 ❤\ufe0f", ["👍🏽", "❤"]),
    ],
)
def test_words_are_found_as_documented(text: str, expected: list[str]) -> None:
    """The module docstring has examples of every kind of word."""
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('צה"ל', ['צה"ל'], id="gershayim"),
        pytest.param("ג'", ["ג'"], id="geresh"),
        pytest.param("ג'ירפה", ["ג'ירפה"], id="apostrophe"),
        pytest.param('"שלום"', ["שלום"], id="quoted"),
    ],
)
def test_hebrew_keeps_its_quotes(text: str, expected: list[str]) -> None:
    """Rules WB7a to WB7c: quotes of acronyms and final apostrophes are part of a word."""
    assert words(text) == expected


@pytest.mark.parametrize("text", ["\U00017000", "\U0001b170", "\U00018b00", "\u3006"])
def test_each_ideograph_is_a_token(text: str) -> None:
    """Tangut, Nushu and Khitan characters are ideographs (Ideographic=Yes), like Han characters."""
    assert words(text + text) == [text, text]


def test_a_flag_is_an_emoji() -> None:
    """Two regional indicators are one emoji, and one token in Lucene."""
    assert words("in 🇩🇪🇫🇷") == ["in", "🇩🇪", "🇫🇷"]


def test_long_rows_of_flags_take_no_quadratic_time() -> None:
    """Placed words are those without places, in time that grows with the text."""
    text = "bark " + "🇩🇪" * 50_000
    assert [word for word, _, _ in placed_words(text)] == words(text) == ["bark", *["🇩🇪"] * 50_000]


@pytest.mark.parametrize("text", ["テ_a", "a_テ", "_テ", "テ_1_ト"])
def test_underscores_join_katakana_and_letters(text: str) -> None:
    """Rules WB13a and WB13b: an underscore joins letters, digits and katakana."""
    assert words(text) == [text]


def test_long_runs_of_underscores_take_no_quadratic_time() -> None:
    """Form lines of web pages have such runs, beside a letter that is not ASCII."""
    assert words("é " + "_" * 200_000 + " x") == ["é", "x"]


def test_long_runs_without_blanks_take_no_quadratic_time() -> None:
    """ASCII before another letter, other letters, and both in turn."""
    assert words("a" * 300_000 + "é") == ["a" * 300_000 + "é"]
    assert words("é-" * 100_000) == ["é"] * 100_000
    assert words("é a\n" * 50_000) == ["é", "a"] * 50_000
