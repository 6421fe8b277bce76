"""How are texts that look alike made equal before words are looked for in them?

By their letters and digits in the usual form (ﬁ, ａ and 𝐚 are compatibility forms of fi and a),
composed (é is one character), without characters that are not seen, such as soft hyphens, and with
a typographic apostrophe as '. Of numbers only subscripts change, so that H₂O is H2O: a superscript
may be the mark of a footnote, and stays outside the word before it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any
from unicodedata import category, combining, decomposition, normalize

APOSTROPHES = "\u2018\u2019\u201b\u02bc\u02bb\u00b4\u2032\uff07"
_STRESSED = re.compile("(?<=[\u0400-\u04ff])[\u0300\u0301]")
_BLANKS = "\u200b\u202f"  # separate words, but are not white space by the rules for words
LONGEST = 4  # letters in a usual form; ﷺ, a phrase of 18, stays as it is
_IN_WORDS = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl"}  # Unicode's general categories


class _Replacements(dict[int, str]):
    """Code point → what replaces it, worked out when it occurs for the first time."""

    def __init__(self, exceptions: dict[str, str]) -> None:
        super().__init__({ord(character): new for character, new in exceptions.items()})

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if _unseen().match(character):
            new = ""
        else:
            usual = normalize("NFKC", character)
            # of other signs, those that stand for one letter, such as Kangxi radicals
            in_words = category(character) in _IN_WORDS or (len(usual) == 1 and usual.isalpha())
            is_subscript = decomposition(character).startswith("<sub>")
            changes = (in_words or is_subscript) and len(usual) <= LONGEST
            new = usual if changes else character
        self[code] = new
        return new


# Blanks; and a mark within words that Persian stemmers know.
_KEPT = {**dict.fromkeys(_BLANKS, " "), "\u200c": "\u200c"}
# Compatibility forms that are letters of everyday use, of Thai, Lao and Korean.
_EVERYDAY = {c: c for c in map(chr, (0x0E33, 0x0EB3, 0x200D, *range(0x3131, 0x318F)))}
_LETTERS = _Replacements({**_KEPT, **_EVERYDAY})
_WORDS = _Replacements({**_KEPT, **dict.fromkeys(APOSTROPHES, "'")})
_WORDS[ord("\u0149")] = "'n"  # ŉ, whose usual form begins with an apostrophe


MOST_MARKS = 30  # that follow one another, as in the Stream-Safe Text Format of Unicode's annex 15


def composed(text: str) -> str:
    """Return `text` composed (NFC), in a time that grows with its length alone.

    More than MOST_MARKS marks in a row, which no language has, stay as they are: to sort them takes
    a time that grows with the square of their number.
    """
    if text.isascii():
        return text
    parts, done = list[str](), 0
    for position in range(0, len(text), MOST_MARKS + 1):  # each such row covers one of these
        if position < done or not combining(text[position]):
            continue
        start, end = position, position + 1
        while start > done and combining(text[start - 1]):
            start -= 1
        while end < len(text) and combining(text[end]):
            end += 1
        if end - start > MOST_MARKS:
            parts += [normalize("NFC", text[done:start]), text[start:end]]
            done = end
    return "".join([*parts, normalize("NFC", text[done:])])


def normal_form(text: str) -> str:
    """Return `text` in the form in which words are compared; ASCII stays as it is.

    Stress marks of Cyrillic vowels are left out; й and ё stay.
    """
    if text.isascii():
        return text
    return _STRESSED.sub("", composed(text.translate(_WORDS)))


def usual_letters(text: str) -> str:
    """Return `text` as models read it: its letters and digits in the usual form, nothing unseen.

    Apostrophes stay, and accents are as they were, since tokenisers have rules of their own for
    them.
    """
    return text if text.isascii() else text.translate(_LETTERS)


@cache
def _unseen() -> Any:
    """Return a pattern of the characters that are not shown; it is compiled by the first call."""
    import regex

    return regex.compile(r"\p{Default_Ignorable_Code_Point}")
