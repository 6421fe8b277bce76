"""Do characters that control a terminal stay out of it, and all others pass?"""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from birchbark.show.printable import printable, printable_json

PASS = set("\t\n\u061c\u200e\u200f\u200b\u200c\u200d\u00ad\ufeff")  # white space, marks, joiners


def test_control_characters_are_replaced() -> None:
    """All controls, separators of lines and controls of direction, of which Unicode knows more."""
    kinds = {"Cc", "Zl", "Zp"}
    directions = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for character in map(chr, range(0x3000)):
        is_control = unicodedata.category(character) in kinds and character not in PASS
        is_control |= unicodedata.bidirectional(character) in directions
        if is_control:
            assert printable(character) == "\ufffd", hex(ord(character))
    for character in (*PASS, "é", "漢", "👩\u200d🚀", "שלום"):
        assert printable(character) == character


@given(st.text())
def test_json_keeps_every_character(text: str) -> None:
    """Those that control a terminal are escaped."""
    shown = printable_json({"text": text})
    assert json.loads(shown) == {"text": text}
    assert printable(shown) == shown
