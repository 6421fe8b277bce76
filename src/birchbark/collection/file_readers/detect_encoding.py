"""In which encoding is a text that does not say, and is not in UTF-8?

Chardet compares bytes with texts of many languages, but is unsure of short ones: then Windows-1252
is preferred if the text looks Western European, with accented letters alone between those of
ASCII. In most other encodings, letters that ASCII lacks form words.
"""

from __future__ import annotations

import re
from io import BytesIO
from itertools import islice

WESTERN = "cp1252"
MOST_READ = 200_000  # bytes that chardet reads
MOST_LINES = 10_000  # that are enough for it
SURE = 0.2  # chardet's confidence from which it is right for nearly all texts of 40 letters or more
LIKELY = 0.06  # of a sister of Windows-1252, which is chosen if it is also LIKELIER by this factor
LIKELIER = 1.5
SISTERS = ("cp1250", "cp1254", "cp1257")  # of Central Europe, Turkey, and the Baltic states
# What browsers read under these names (https://encoding.spec.whatwg.org, "Names and labels"); and
# Hebrew with quotation marks, where ISO 8859 has control characters.
IN_BROWSERS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-8": "cp1255",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
}
_NOT_WESTERN = re.compile(
    r"[^\W\d_a-zA-Z]{3}"  # three letters in a row that ASCII lacks
    r"|[^\W\d_][^\x00-\x7f\w\s’‘·–—\xad…][^\W\d_]"  # a symbol within a word
    r"|[^\W\d_][‚„]"  # an opening quotation mark after a letter
    r"|[a-zß-ÿ][À-ÖØ-ÞŠŒŽŸ]"  # a capital within a word
)
_ASCII_LETTER, _OTHER_SCRIPT = "[A-Za-z]", "[\u0370-\u1dff\u2c00-\ua6ff]"
_TWO_SCRIPTS = re.compile(f"{_ASCII_LETTER}{_OTHER_SCRIPT}|{_OTHER_SCRIPT}{_ASCII_LETTER}")


def detect_encoding(raw: bytes) -> str | None:
    """Return the encoding in which the bytes are most likely a text; None if in no encoding."""
    import chardet

    era = chardet.EncodingEra
    found = chardet.detect_all(
        _telling(raw),
        encoding_era=era.MODERN_WEB | era.LEGACY_ISO | era.LEGACY_MAC | era.DOS,
        # Not prefer_superset, which calls ISO-8859-2, -5 and -6 Windows-1250, -1251 and -1256.
        compat_names=False,
    )
    confidence: dict[str, float] = {}
    for candidate in found:  # the best first
        name = str(candidate["encoding"])
        confidence.setdefault(IN_BROWSERS.get(name, name), candidate["confidence"])
    possible = [name for name in confidence if decoded(raw, name) is not None]
    if not possible:
        return None
    best = possible[0]
    western = decoded(raw, WESTERN)
    looks_western = western is not None and not _NOT_WESTERN.search(western)
    if confidence[best] >= SURE:
        equal = confidence.get(WESTERN) == confidence[best]
        return WESTERN if looks_western and equal else best
    if looks_western:
        rival = max(SISTERS, key=lambda name: confidence.get(name, 0))
        likely = max(LIKELY, LIKELIER * confidence.get(WESTERN, 0))
        return rival if confidence.get(rival, 0) > likely else WESTERN
    others = (n for n in possible if n != WESTERN)
    one_script = (n for n in others if not _TWO_SCRIPTS.search(raw.decode(n)))
    return next(one_script, best)


def _telling(raw: bytes) -> bytes:
    """Return the lines that tell the encoding, with bytes that ASCII lacks; all if there are none.

    Chardet reads the first bytes only, which may be in ASCII throughout.
    """
    if len(raw) <= MOST_READ or b"\0" in raw:  # UTF-16 has no lines of bytes
        return raw
    lines = (line for line in BytesIO(raw) if not line.isascii())
    return b"".join(islice(lines, MOST_LINES)) or raw


def decoded(raw: bytes, encoding: str | None) -> str | None:
    """Return `raw` decoded; None without an encoding, or if it cannot be decoded in it."""
    try:
        return raw.decode(encoding) if encoding else None
    except (UnicodeError, LookupError):
        return None
