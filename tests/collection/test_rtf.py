"""Are the letters of RTF read in the code pages of their fonts?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.file_readers.rtf import FALLBACK, in_unicode
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake
from growth import FASTER_THAN_SQUARE, growth

FONTS = rb"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset128 C;}{\f3 D;}}"
PIECES = [
    b"{",
    b"}",
    rb"\'e9",
    rb"\'82",
    rb"\u1055",
    b"?",
    rb"\uc2",
    rb"\f2 ",
    b" x",
    b"\\",
]


def written(text: str, code_page: str) -> bytes:
    """Return a text as the bytes of a code page, as RTF writes them."""
    return b"".join(rb"\'%02x" % byte for byte in text.encode(code_page))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (rb"\f1 " + written("Кора", "cp1251") + rb" x{\f0 caf\'e9}", "Кора xcafé"),
        (rb"\f3 " + written("φλοιός", "cp1253"), "φλοιός"),
        (written("caf\xe9", "cp1252") + rb"\f1\'ca\plain\'e9", "caféКé"),
        (rb"\f2 " + written("白樺の木", "cp932") + b" x", "白樺の木 x"),
        (rb"\f2\uc2 " + written("白樺", "cp932") + rb" \u26408\'96\'d8 x", "白樺 木 x"),
        (rb"\f2{\uc0 " + written("白", "cp932") + rb"\u26408 x}", "白木x"),
        (rb"\f1\u1050? \u1050\'ca \'ca", "К К К"),
        (rb"\f1{\*\data\bin8 }\'ca\\{}\'ca", "К"),
        (rb"\f2\'83A\'83\'43 A\'96\'d8", "アイ A木"),
        (rb"\f2\'81 x", "\u0081 x"),
        (rb"last words.\page First\sect words\column", "last words.\n\nFirst\n\nwords"),
    ],
)
def test_letters_are_in_the_code_page_of_their_font(tmp_path: Path, body: bytes, text: str) -> None:
    """A font without one is in that of the file; fallbacks of numbers are left out."""
    pytest.importorskip("pypandoc")
    (tmp_path / "a.rtf").write_bytes(rb"{\rtf1\ansi\ansicpg1253\deff0" + FONTS + body + rb"\par}")
    ((_, document),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert document.text == text


@given(st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_a_western_file_stays(raw: bytes) -> None:
    """But for the fallbacks after numbers, which are all the same then."""
    western = raw.replace(rb"\f2 ", b"").replace(rb"\u1055", b"")
    assert in_unicode(western) == western
    assert in_unicode(raw).replace(FALLBACK, b"").count(b"{") <= raw.count(b"{")


@pytest.mark.parametrize(
    "flood", [b"{", rb"\'e9", rb"\u1055", rb"\uc9999999\f2\'82\'a0", rb"\bin", b"\\", b"a"]
)
def test_floods_end_soon(flood: bytes) -> None:
    """The time grows with the length, and no file becomes many times longer."""
    head = rb"{\rtf1\ansicpg1251" + FONTS
    assert growth(lambda n: in_unicode(head + flood * n), 5_000, 20_000) < FASTER_THAN_SQUARE
    assert len(in_unicode(head + flood * 5_000)) < 20 * len(head + flood * 5_000)
