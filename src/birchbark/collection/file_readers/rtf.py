r"""In which code page is each letter of RTF that is written as a byte, such as \'e9?

It is that of the font, or else of the whole file. Pandoc reads all as Windows-1252. So letters of
other code pages are written as numbers in Unicode, which it reads as well. After such a number it
skips the fallback for old programs, and with one that is no byte, also the blank that follows.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from birchbark.collection.file_readers.detect_encoding import decoded
from birchbark.collection.file_readers.text_encoding import usable_encoding

WESTERN = "cp1252"
OF_FILE = {b"mac": "mac-roman", b"pc": "cp437", b"pca": "cp850"}  # besides \ansicpg
OF_FONT = {  # \fcharset → code page; 2 are symbols
    0: WESTERN, 2: WESTERN, 77: "mac-roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "cp950",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437",
}  # fmt: skip
MOST_FALLBACKS = 8  # after each number
FALLBACK = rb"\'3f"  # a question mark
BREAKS = {b"page", b"sect", b"column"}  # which pandoc leaves out, so that words would be joined
PARAGRAPH = rb"\par "
_TOKEN = re.compile(
    rb"((?:\\'[0-9a-fA-F]{2}[\r\n]*)+)|\\([a-z]{1,32})(-?[0-9]{1,9})? ?|\\.|[{}]|[^\\{}]+|.", re.S
)
_BYTE = re.compile(rb"\\'(..)[\r\n]*", re.S)


@dataclass(frozen=True)
class _Group:
    """What holds until the end of a group: the font, and the fallbacks after a \\u."""

    font: int
    fallbacks: int = 1


@dataclass
class _Rtf:
    """What has been read of a file."""

    code_page: str = WESTERN
    default_font: int = 0
    code_pages: dict[int, str] = field(default_factory=dict)  # of fonts
    group: _Group = _Group(0)
    around: list[_Group] = field(default_factory=list)
    skipped: int = 0  # fallbacks that are still to come

    def word(self, name: bytes, number: int) -> None:
        """Read a control word."""
        if name == b"u":
            self.skipped = self.group.fallbacks
        elif name == b"uc":
            self.group = replace(self.group, fallbacks=max(0, number))
        elif name == b"f":
            self.group = replace(self.group, font=number)
        elif name == b"plain":
            self.group = replace(self.group, font=self.default_font)
        elif name == b"deff":
            self.default_font = number
            self.group = replace(self.group, font=number)
        elif name == b"fcharset" and number in OF_FONT:
            self.code_pages[self.group.font] = OF_FONT[number]
        elif name == b"ansicpg":
            self.code_page = usable_encoding(f"cp{number}") or WESTERN
        elif name in OF_FILE:
            self.code_page = OF_FILE[name]

    def letters(self, run: bytes, following: bytes) -> tuple[bytes, int]:
        """Return bytes that follow one another as numbers in Unicode, if that is needed.

        Also returns how many characters of `following` are in them: the second byte of a letter may
        be in ASCII. Bytes that are no text in the code page stay what they are.
        """
        code_page = self.code_pages.get(self.group.font, self.code_page)
        letters = b"".join(bytes.fromhex(found.decode()) for found in _BYTE.findall(run))
        first = min(self.skipped, len(letters))
        self.skipped -= first
        letters, fallbacks = letters[first:], self.group.fallbacks
        if not letters or code_page == WESTERN or fallbacks > MOST_FALLBACKS:
            return run, 0
        text, taken = decoded(letters, code_page), 0
        if text is None:
            text, taken = decoded(letters + following, code_page), len(following)
        if text is None:
            return run, 0
        return FALLBACK * first + _in_unicode(text, FALLBACK * fallbacks or b" "), taken


def in_unicode(raw: bytes) -> bytes:
    """Return an RTF file in which the letters of code pages other than Western are in Unicode."""
    return b"".join(_rewritten(raw))


def _rewritten(raw: bytes) -> Iterator[bytes]:
    rtf, position = _Rtf(), 0
    while token := _TOKEN.match(raw, position):
        start, position = position, token.end()
        run, name, number = token.groups()
        if run:
            next_one = raw[position : position + 1]
            letters, taken = rtf.letters(run, b"" if next_one in b"\\{}" else next_one)
            position += taken
            yield letters
            continue
        if name == b"bin":  # data, for which pandoc has no place
            position += max(0, int(number or 0))
            continue
        if token[0] == b"{":
            rtf.around.append(rtf.group)
        elif token[0] == b"}" and rtf.around:
            rtf.group = rtf.around.pop()
        is_text = not name and token[0][:1] not in b"\\{}"
        fallbacks = min(rtf.skipped, len(token[0])) if is_text else 0
        rtf.skipped = rtf.skipped - fallbacks if is_text else 0
        if name:
            rtf.word(name, int(number or 0))
        rest = FALLBACK * fallbacks + raw[start + fallbacks : position]
        yield PARAGRAPH if name in BREAKS else rest


def _in_unicode(text: str, fallback: bytes) -> bytes:
    """Return the characters as signed numbers of 16 bits, each with its fallback."""
    units = array("h", text.encode("utf-16-le"))
    if sys.byteorder == "big":
        units.byteswap()
    return b"".join(rb"\u%d" % unit + fallback for unit in units)
