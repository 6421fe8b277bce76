"""How is text split into words by Unicode's rules for word boundaries (UAX #29), as in Lucene?

A word is a run of letters, digits and underscores with at least one letter or digit. A single
character such as . : ' between letters ("u.s", "don't") or . , ; ' between digits ("3.14") does not
end it. Each ideograph and each hiragana character is a word, and so is a run of katakana,
a run of a script without spaces (Thai, Lao, Khmer, Burmese), and an emoji. Words are in the form of
normal_form.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from birchbark.text.normal_form import normal_form

PIECE = 65_536  # characters; see `pieces`
BETWEEN_LETTERS, BETWEEN_DIGITS = ":.'", ",;.'"  # ASCII characters that may occur inside a word

_ASCII = re.compile(
    rf"\w+(?:(?:(?<=[A-Za-z])[{BETWEEN_LETTERS}](?=[A-Za-z])"
    rf"|(?<=[0-9])[{BETWEEN_DIGITS}](?=[0-9]))\w+)*",
    re.ASCII,
)
_NON_ASCII = re.compile(r"[^\x00-\x7f]")
# No word contains one of these, and none is changed by what stands beside it.
_APART = re.compile(r"[\s!#$%&()*+/<=>?@\[\\\]{|}~-]", re.ASCII)


def pieces(
    text: str, size: int = PIECE, reach: int = PIECE, apart: re.Pattern[str] = _APART
) -> Iterator[str]:
    """Yield `text` in consecutive pieces, whose words are together those of the text.

    So a long text can be read in short steps. A piece has `size` characters and those until the
    next white space or punctuation mark. If none of the next `reach` characters is one, it ends
    there, which can cut a word in two. apart: finds where else a piece may end.
    """
    begin = 0
    while len(text) - begin > size:
        most = begin + size + reach
        found = apart.search(text, begin + size, most)
        end = found.start() if found else min(most, len(text))
        yield text[begin:end]
        begin = end
    yield text[begin:]


def words(text: str) -> list[str]:
    """Return the words of `text`, in order and in normal form."""
    runs: list[str] = _ASCII.findall(text) if text.isascii() else _mixed(text)
    return [word for word in runs if word.strip("_")] if "_" in text else runs


def placed_words(text: str) -> list[tuple[str, int, int]]:
    """Return the words of `text` as `words` does, each with where it begins and ends in `text`."""
    places: list[tuple[str, int, int]] = []
    done = 0
    for begin, end in [*_chunks(text), (len(text), len(text))]:
        places += [(found[0], *found.span()) for found in _ASCII.finditer(text, done, begin)]
        places += _placed_in(text, begin, end)
        done = end
    return [place for place in places if place[0].strip("_")]


def _mixed(text: str) -> list[str]:
    """Split text with non-ASCII characters."""
    runs: list[str] = []
    done = 0
    for begin, end in _chunks(text):
        runs += _ASCII.findall(text, done, begin)
        runs += _unicode().findall(normal_form(text[begin:end]))
        done = end
    return runs + _ASCII.findall(text, done)


def _chunks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the chunks between blanks are that contain non-ASCII characters.

    Only for these the slower pattern `_unicode` is used.
    """
    done = 0
    while non_ascii := _NON_ASCII.search(text, done):
        begin = text.rfind(" ", done, non_ascii.start()) + 1 or done
        end = text.find(" ", non_ascii.end())
        done = len(text) if end < 0 else end
        yield begin, done


def _placed_in(text: str, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a chunk with non-ASCII characters, and where they are in `text`."""
    pieces, begins, ends = list[str](), list[int](), list[int]()  # bounds: of each new character
    for cluster in _clusters().finditer(text, begin, end):
        new = normal_form(cluster[0])
        pieces.append(new)
        begins += [cluster.start()] * len(new)
        ends += [cluster.end()] * len(new)
    for found in _unicode().finditer("".join(pieces)):
        yield found[0], begins[found.start()], ends[found.end() - 1]


@cache
def _clusters() -> Any:
    """Return a pattern of a character with what combines with it; see `_unicode`."""
    import regex

    # not \X alone, which counts flags from the beginning of their row: quadratic time
    return regex.compile(r"\p{Regional_Indicator}|\X")


@cache
def _unicode() -> Any:
    """Return a pattern that matches words by UAX #29; it is compiled by the first call."""
    import regex

    extend = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+"
    hebrew, any_letter = r"\p{WB=Hebrew_Letter}", r"[\p{WB=ALetter}\p{WB=Hebrew_Letter}]"
    between_letters = r"[\p{WB=MidLetter}\p{WB=MidNumLet}\p{WB=Single_Quote}]"
    between_digits = r"[\p{WB=MidNum}\p{WB=MidNumLet}\p{WB=Single_Quote}]"
    letter = (
        rf"{any_letter}{extend}(?:{between_letters}{extend}(?={any_letter})"
        rf"|(?<={hebrew}{extend})(?:\p{{WB=Double_Quote}}{extend}(?={hebrew})"
        rf"|\p{{WB=Single_Quote}}{extend}))?+"
    )
    digit = rf"\p{{WB=Numeric}}{extend}(?:{between_digits}{extend}(?=\p{{WB=Numeric}}))?+"
    run = rf"(?:(?:{letter}|{digit})++|(?:\p{{WB=Katakana}}{extend})++)"
    joiner = rf"(?:\p{{WB=ExtendNumLet}}{extend})"
    flag = rf"\p{{Regional_Indicator}}{extend}\p{{Regional_Indicator}}{extend}"
    pictograph = rf"\p{{Extended_Pictographic}}{extend}"
    return regex.compile(
        rf"(?<!\p{{WB=ExtendNumLet}}){joiner}*+{run}(?:{joiner}++{run})*+{joiner}*+"
        rf"|\p{{Ideographic}}{extend}|\p{{Script=Hiragana}}{extend}"
        rf"|(?:\p{{Line_Break=Complex_Context}}{extend})++"
        rf"|{flag}|{pictograph}"
    )
