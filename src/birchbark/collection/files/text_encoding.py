"""In which encoding is a text file: by its byte order mark, its own declaration, or its bytes?"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from pathlib import Path

from birchbark import defaults
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
# What browsers read under these names (https://encoding.spec.whatwg.org, "Names and labels").
_IN_BROWSERS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
}


def decode_text(raw: bytes, path: Path, intake: Intake, *, markup: bool) -> str:
    """Return the text of a file, with its lines separated by line feeds, without the last one.

    The encoding is, in this order, that of a byte order mark; the one that the file declares; the
    intake's. If the intake's is UTF-8, a file that is mostly in UTF-8 may have lines in
    Windows-1252; of any other file, the encoding is detected. Either is noted in `intake`. markup:
    whether the file is HTML or XML, which may declare its encoding.

    Raises InputError with file and line, if known, for a file that is not text, or not in the
    encoding.
    """
    text = _by_mark(raw, path)
    if text is None and markup:
        text = _decoded(raw, declared_encoding(raw))
    if text is None and intake.encoding == defaults.ENCODING:
        text = _by_lines(raw, intake) if b"\0" not in raw else None
        text = text if text is not None else _by_detection(raw, intake)
    recoded = raw if text is None else text.encode(errors="surrogatepass")
    lines = [line.rstrip(b"\r") for line in recoded.removesuffix(b"\n").split(b"\n")]
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
    return _IN_BROWSERS.get(codec, codec)


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


def _by_lines(raw: bytes, intake: Intake) -> str | None:
    """Return the text of a file in UTF-8, with a few lines in Windows-1252, as from another file.

    None if half of its lines that are not ASCII are not in UTF-8.
    """
    text = _decoded(raw, "utf-8")
    if text is not None:
        return text
    lines, unlike_ascii, other = [], 0, 0
    for line in raw.split(b"\n"):
        decoded = _decoded(line, "utf-8")
        unlike_ascii += not line.isascii()
        other += decoded is None
        lines.append(line.decode("cp1252", "replace") if decoded is None else decoded)
    if other * 2 >= unlike_ascii:
        return None
    intake.note(
        "file in UTF-8 with some lines in another encoding, which were read as Windows-1252"
    )
    return "\n".join(lines)


def _by_detection(raw: bytes, intake: Intake) -> str | None:
    """Return the text in the encoding that chardet finds the most likely, and note it.

    None if the bytes are no text in any encoding.
    """
    import chardet

    found = chardet.detect(
        raw,
        encoding_era=chardet.EncodingEra.ALL & ~chardet.EncodingEra.MAINFRAME,
        prefer_superset=True,
        compat_names=False,
    )
    text = _decoded(raw, found["encoding"])
    if text is None or "\0" in text:
        return None
    intake.note(f"not in UTF-8; read as {found['encoding']}, which was detected")
    return text


def _decoded(raw: bytes, encoding: str | None) -> str | None:
    """Return `raw` decoded; None without an encoding, or if it cannot be decoded in it."""
    try:
        return raw.decode(encoding) if encoding else None
    except UnicodeDecodeError:
        return None
