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

_ASCII = re.compile(
    r"\w+(?:(?:(?<=[A-Za-z])[:.'](?=[A-Za-z])|(?<=[0-9])[,;.'](?=[0-9]))\w+)*", re.ASCII
)


def words(text: str) -> list[str]:
    """The tokens of `text`, in order, as they stand in it."""
    found: list[str] = (_ASCII if text.isascii() else _unicode()).findall(text)
    return [word for word in found if word.strip("_")] if "_" in text else found


@cache
def _unicode() -> Any:
    """UAX #29 as a pattern over the Word_Break property; built when first needed."""
    import regex

    extend = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+"
    letter = rf"[\p{{WB=ALetter}}\p{{WB=Hebrew_Letter}}]{extend}"
    mid_letter = rf"[\p{{WB=MidLetter}}\p{{WB=MidNumLet}}\p{{WB=Single_Quote}}]{extend}"
    digit = rf"\p{{WB=Numeric}}{extend}"
    mid_digit = rf"[\p{{WB=MidNum}}\p{{WB=MidNumLet}}\p{{WB=Single_Quote}}]{extend}"
    joiner = rf"\p{{WB=ExtendNumLet}}{extend}"
    next_letter = r"(?=[\p{WB=ALetter}\p{WB=Hebrew_Letter}])"
    return regex.compile(
        rf"(?:{letter}(?:{mid_letter}{next_letter})?+"
        rf"|{digit}(?:{mid_digit}(?=\p{{WB=Numeric}}))?+|{joiner})++"
        rf"|(?:\p{{WB=Katakana}}{extend}|{joiner})++"
        rf"|\p{{Script=Han}}{extend}|\p{{Script=Hiragana}}{extend}"
        rf"|(?:\p{{Line_Break=Complex_Context}}{extend})++"
        rf"|\p{{Extended_Pictographic}}{extend}(?:(?<=\u200d)\p{{Extended_Pictographic}}{extend})*+"
    )
