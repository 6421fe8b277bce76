"""In which encoding is a text file: by its byte order mark, its own declaration, or its bytes?"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from pathlib import Path

from birchbark import defaults
from birchbark.collection.file_readers.detect_encoding import (
    IN_BROWSERS,
    WESTERN,
    decoded,
    detect_encoding,
)
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import UTF8_BOM, decode_lines
from birchbark.errors import InputError

BYTE_ORDER_MARKS = {  # the first that fits; the mark of UTF-16 is the beginning of that of UTF-32
    UTF8_BOM: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
SEARCHED = 1024  # bytes in which HTML has to declare its encoding
_XML = re.compile(rb"""\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})""", re.ASCII)
_META = re.compile(
    rb"""<meta\s[^>]{0,400}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.ASCII | re.IGNORECASE
)
_PROBE = bytes(range(32, 127)).replace(b"\\", b"\\n\n")  # a backslash is no escape
_UPPER_HALF = bytes(range(128, 256))
_PRINTABLE = bytes(range(32, 127)) + b"\t\n\r"
_CONTROLS = bytes(set(range(32)) - set(_PRINTABLE))
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_STRAY = re.compile("[\udc80-\udcff]")  # a byte that is not in UTF-8, decoded by surrogateescape


def decode_text(raw: bytes, path: Path, intake: Intake, *, markup: bool) -> str:
    """Return the text of a file, with its lines separated by line feeds, without the last one.

    The encoding is, in this order, that of a byte order mark; the one that the file declares; the
    intake's. If the intake's is UTF-8, a file that is mostly in UTF-8 may have bytes in
    Windows-1252; of any other file, the encoding is detected. Either is noted in `intake`. markup:
    whether the file is HTML or XML, which may declare its encoding.

    Raises InputError with file and line, if known, for a file that is not text, or not in the
    encoding.
    """
    text = _by_mark(raw, path)
    if text is None and markup:
        text = decode_as_declared(raw, declared_encoding(raw))
    if text is None and intake.encoding == defaults.ENCODING:
        wide = _may_be_utf16(raw)
        text = None if wide else as_utf8(raw, intake)
        if text is None and (wide or b"\0" not in raw):
            text = _by_detection(raw, intake)
    recoded = raw if text is None else text.encode(errors="surrogatepass")
    ended = (line.rstrip(b"\r") for line in recoded.removesuffix(b"\n").split(b"\n"))
    lines = [line for part in ended for line in part.split(b"\r")]  # old Macs' line breaks
    encoding = intake.encoding if text is None else "utf-8"
    return "\n".join(decode_lines(enumerate(lines, 1), path, encoding))


def declared_encoding(raw: bytes) -> str | None:
    """Return the encoding that the beginning of an HTML or XML file declares.

    None if it declares none, an unknown one, or one that its own declaration is not written in,
    such as UTF-16 without a byte order mark. Names mean what they mean in browsers: ISO-8859-1 is
    Windows-1252.
    """
    start = raw[:SEARCHED]
    found = _XML.match(start) or _META.search(start)
    return usable_encoding(found[1].decode("ascii")) if found else None


def decode_as_declared(raw: bytes, encoding: str | None) -> str | None:
    """Return the text in the encoding that it declares; None if it declares none, or is not in it.

    UTF-8 takes precedence over a declared encoding in which each byte is a character: hardly any
    text in such an encoding is valid UTF-8 as well.
    """
    if encoding and not raw.isascii() and len(_UPPER_HALF.decode(encoding, "replace")) == 128:
        text = decoded(raw, "utf-8")
        return decoded(raw, encoding) if text is None else text
    return decoded(raw, encoding)


@lru_cache
def usable_encoding(name: str) -> str | None:
    """Return the name of a codec of which ASCII is a part; None if `name` is not one."""
    try:
        codec = codecs.lookup(name).name
        if str(_PROBE, codec) != _PROBE.decode("ascii"):
            return None
    except (LookupError, ValueError):
        return None
    return IN_BROWSERS.get(codec, codec)


def _by_mark(raw: bytes, path: Path) -> str | None:
    """Return the text after a byte order mark; None without one."""
    encoding = next((name for mark, name in BYTE_ORDER_MARKS.items() if raw.startswith(mark)), None)
    if encoding is None:
        return None
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            "wrong encoding",
            where=str(path),
            wanted=f"{encoding.removesuffix('-sig').upper()}, as its byte order mark says",
            found=f"invalid bytes at position {error.start + 1} of the file",
        ) from None


def _may_be_utf16(raw: bytes) -> bool:
    """Whether a file without a byte order mark may be in UTF-16; a few NULs alone are no evidence.

    In UTF-16, every second byte of most alphabets is a control character, and fewer than three in
    four bytes of all others are printable in ASCII.
    """
    if b"\0" not in raw:
        return False
    controls = len(raw) - len(raw.translate(None, _CONTROLS))
    printable = len(raw) - len(raw.translate(None, _PRINTABLE))
    return 8 * controls >= len(raw) or 4 * printable < 3 * len(raw)


def as_utf8(raw: bytes, intake: Intake) -> str | None:
    """Return the text of a file in UTF-8, with a few bytes in Windows-1252, as from another file.

    None if it has more such bytes than characters in UTF-8 that ASCII lacks. Of those, four beside
    such bytes count as one: in other encodings, some bytes are valid in UTF-8 by chance.
    """
    if (text := decoded(raw, "utf-8")) is not None:
        return text
    text = raw.decode("utf-8", "surrogateescape")
    runs = [(len(run), len(_STRAY.findall(run))) for run in _NOT_ASCII.findall(text)]
    if sum(stray for _, stray in runs) > sum(
        (length - stray) / (4 if stray else 1) for length, stray in runs
    ):
        return None
    intake.note(
        "file in UTF-8 with some bytes in another encoding, which were read as Windows-1252"
    )
    return _STRAY.sub(lambda byte: bytes([ord(byte[0]) - 0xDC00]).decode(WESTERN, "replace"), text)


def _by_detection(raw: bytes, intake: Intake) -> str | None:
    """Return the text in the encoding that is the most likely, and note it.

    None if the bytes are no text in any encoding.
    """
    encoding = detect_encoding(raw)
    text = decoded(raw, encoding)
    if text is None or "\0" in text:
        return None
    intake.note(f"not in UTF-8; read as {encoding}, which was detected")
    return text
