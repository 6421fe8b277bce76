"""How are words of languages other than English turned into terms?

By a Snowball stemmer of that language; Chinese, Japanese and Korean, whose words are not separated
or have many endings, by pairs of neighbouring characters, as in Lucene's CJKAnalyzer, and by single
Chinese characters. No stop words are left out: BM25 gives frequent words little weight.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any
from unicodedata import name

from birchbark.text.normal_form import normal_form
from birchbark.text.words import pieces, words

CODES = (
    "ar hy eu ca cs da nl eo et fi fr de el hi hu id ga it lt ne no fa pl pt ro ru sr st es sv ta "
    "tr yi"
).split()
LANGUAGES = tuple(
    (
        "arabic armenian basque catalan czech danish dutch esperanto estonian finnish french "
        "german greek hindi hungarian indonesian irish italian lithuanian nepali norwegian persian "
        "polish portuguese romanian russian serbian sesotho spanish swedish tamil turkish yiddish"
    ).split()
)
# ISO 639 code → analyzer
ANALYZER_OF = {
    **dict(zip(CODES, LANGUAGES, strict=True)),
    **dict.fromkeys(("zh", "ja", "ko"), "cjk"),
    **dict.fromkeys(("nb", "nn"), "norwegian"),
}
_CATALAN_ELISION = re.compile(r"[dlmnst]'(?=.)")


def stemmed(language: str) -> Callable[[str], str]:
    """Return the function that maps a word in lower case to its stem.

    language: one of LANGUAGES. An elided article ("l'avion") is removed.
    """
    stem = snowball(language)

    if language != "catalan":
        return stem
    return lambda word: stem(_CATALAN_ELISION.sub("", word, count=1))


def lower(word: str, language: str = "") -> str:
    """Return the word in lower case, by the rules of the language; İ becomes i in all of them."""
    if language == "turkish":  # I and ı are a pair
        word = word.replace("I", "ı")
    return word.replace("İ", "i").lower()


@cache
def snowball(algorithm: str) -> Callable[[str], str]:
    """Return the stemmer of an algorithm of Snowball: one of LANGUAGES, or `porter`."""
    from Stemmer import Stemmer

    # A cache (its size is 0 here) would cost more than it saves: each token is stemmed only once.
    return Stemmer(algorithm, 0).stemWord  # type: ignore[no-any-return]


def character_pairs(text: str) -> list[str]:
    """Return the pairs of neighbouring Chinese, Japanese and Korean characters, and other words.

    A Chinese character, and a character without such a neighbour, is a token by itself, too.
    """
    return [token for piece in pieces(text) for token in _character_pairs(piece)]


def _character_pairs(text: str) -> list[str]:
    tokens: list[str] = []
    done, text = 0, normal_form(text)
    for run in _cjk().finditer(text):
        tokens += words(text[done : run.start()])
        characters = run.group()
        for i, character in enumerate(characters):
            if len(characters) == 1 or _is_chinese(character):
                tokens.append(character)
            if i + 1 < len(characters):
                tokens.append(characters[i : i + 2])
        done = run.end()
    return tokens + words(text[done:])


def _is_chinese(character: str) -> bool:
    return name(character, "").startswith("CJK ")


@cache
def _cjk() -> Any:
    """Return a pattern that matches runs of these characters; it is compiled by the first call."""
    import regex

    return regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー\u3099\u309a]+")
