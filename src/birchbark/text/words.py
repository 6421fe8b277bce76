"""Where are the words in a text? Unicode's word boundaries (UAX #29), as Lucene applies them.

A token is a run of letters, digits and underscores that holds a letter or digit. Between letters a
single . : ' or their kin do not end it ("u.s", "don't"), nor do . , ; between digits ("3.14").
Each ideograph and each hiragana sign is a token; so is a run of katakana, of a script without
spaces (Thai, Lao, Khmer, Burmese), and an emoji.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

BETWEEN_LETTERS, BETWEEN_DIGITS = ":.'", ",;.'"  # those in ASCII

_ASCII = re.compile(
    rf"\w+(?:(?:(?<=[A-Za-z])[{BETWEEN_LETTERS}](?=[A-Za-z])"
    rf"|(?<=[0-9])[{BETWEEN_DIGITS}](?=[0-9]))\w+)*",
    re.ASCII,
)
_BEYOND = re.compile(r"[^\x00-\x7f]")


def words(text: str) -> list[str]:
    """The tokens of `text`, in order, as they stand in it."""
    found: list[str] = _ASCII.findall(text) if text.isascii() else _mixed(text)
    return [word for word in found if word.strip("_")] if "_" in text else found


def _mixed(text: str) -> list[str]:
    """As `_unicode` finds them. Of pieces between blanks, only those beyond ASCII need it."""
    found: list[str] = []
    done = 0
    while beyond := _BEYOND.search(text, done):
        begin = text.rfind(" ", done, beyond.start()) + 1 or done
        end = text.find(" ", beyond.end())
        end = len(text) if end < 0 else end
        found += _ASCII.findall(text, done, begin)
        found += _unicode().findall(text[begin:end])
        done = end
    return found + _ASCII.findall(text, done)


@cache
def _unicode() -> Any:
    """UAX #29 as a pattern over the Word_Break property; built when first needed."""
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
        rf"|{flag}|{pictograph}(?:(?<=\u200d){pictograph})*+"
    )
