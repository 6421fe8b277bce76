"""In which encoding is a text file: by its byte order mark, its own declaration, or as given?"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from pathlib import Path

from birchbark.collection.lines import UTF8_BOM, decode_lines, open_decompressed
from birchbark.errors import InputError

BYTE_ORDER_MARKS = {  # the first that fits; the mark of UTF-16 is the beginning of that of UTF-32
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


def read_text(path: Path, encoding: str, *, markup: bool) -> str:
    """Return the text of a plain or gzipped file, with its lines separated by line feeds.

    encoding: of files without a byte order mark that do not declare an encoding, or cannot be
    decoded in the one that they declare. markup: whether the file is HTML or XML, which may declare
    its encoding. Raises InputError with file and line, if known, for a file that cannot be read or
    decoded.
    """
    try:
        with open_decompressed(path) as stream:
            raw = stream.read()
    except InputError as error:
        raise error.at(str(path)) from None
    recoded = _by_mark(path, raw)
    if recoded is None and markup:
        recoded = _by_declaration(raw)
    if recoded is not None:
        raw, encoding = recoded, "utf-8"
    lines = [line.rstrip(b"\r") for line in raw.removesuffix(b"\n").split(b"\n")]
    return "\n".join(decode_lines(enumerate(lines, 1), path, encoding))


def declared_encoding(raw: bytes) -> str | None:
    """Return the encoding that the beginning of an HTML or XML file declares.

    None if it declares none, an unknown one, or one that its own declaration is not written in,
    such as UTF-16 without a byte order mark. As in browsers, ISO-8859-1 and ASCII mean
    Windows-1252.
    """
    start = raw[:SEARCHED]
    found = _XML.match(start) or _META.search(start)
    return _usable(found[1].decode("ascii")) if found else None


@lru_cache
def _usable(name: str) -> str | None:
    """Return the name of a codec of which ASCII is a part; None if `name` is not one."""
    try:
        codec = codecs.lookup(name).name
        if str(_PROBE, codec) != _PROBE.decode("ascii"):
            return None
    except (LookupError, ValueError):
        return None
    return "cp1252" if codec in {"iso8859-1", "ascii"} else codec


def _by_mark(path: Path, raw: bytes) -> bytes | None:
    """Return what follows a byte order mark as UTF-8; None without a mark."""
    if raw.startswith(UTF8_BOM):
        return raw.removeprefix(UTF8_BOM)
    encoding = next((name for mark, name in BYTE_ORDER_MARKS.items() if raw.startswith(mark)), None)
    if encoding is None:
        return None
    try:
        return raw.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise InputError(
            "wrong encoding",
            where=str(path),
            wanted=f"{encoding.upper()}, as its byte order mark says",
            found=f"invalid bytes at position {error.start + 1} of the file",
        ) from None


def _by_declaration(raw: bytes) -> bytes | None:
    """Return `raw` as UTF-8; None if it declares no encoding or cannot be decoded in it."""
    encoding = declared_encoding(raw)
    try:
        return raw.decode(encoding).encode() if encoding else None
    except UnicodeDecodeError:
        return None
