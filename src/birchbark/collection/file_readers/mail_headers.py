"""What do the headers of an e-mail say: who wrote it to whom, when, and in which encodings?"""

from __future__ import annotations

import re
from datetime import UTC
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from email.utils import getaddresses, parsedate_to_datetime

from birchbark.collection.file_readers.file import Fields
from birchbark.collection.file_readers.text_encoding import decode_as_declared, usable_encoding

PEOPLE = ("from", "to", "cc")
LONGEST = 10_000  # characters of a header that are read
LONGEST_OTHER = 2_000  # of one that people do not read, such as the type of a part
_ESCAPED = re.compile(r"\\u((?!d[89a-f])[0-9a-f]{4})|\\U(00(?:0[1-9a-f]|10)[0-9a-f]{4})")
UNDECLARED = ("", "ascii", "us-ascii")  # what programs write that do not know the encoding


class _ShortHeaders(Compat32):
    """Cuts long headers before they are parsed, which takes time in the square of their length."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Return name and value of a header; one that is too long has one character too many."""
        name, value = super().header_source_parse(sourcelines)
        longest = LONGEST if name.lower() in (*PEOPLE, "subject") else LONGEST_OTHER
        return name, value[: longest + 1]


SHORT_HEADERS = _ShortHeaders()


def has_long_header(message: Message) -> bool:
    """Return whether a header that people read was cut; others are cut below LONGEST."""
    return any(len(value) > LONGEST for _, value in message.raw_items())


def header_fields(message: Message) -> Fields:
    """Return `from`, `to` and `cc`, each as `Name <address>, …`, and `date`, of those it has.

    The date is in UTC and sorts as text: 2026-11-24T10:03:00Z.
    """
    people = {name: _people(message, name) for name in PEOPLE}
    return {name: value for name, value in {**people, "date": _date(message)}.items() if value}


def header_lines(fields: Fields) -> str:
    """Return the names and addresses as people see them above an e-mail, a line each header."""
    return "\n".join(f"{name.title()}: {fields[name]}" for name in PEOPLE if name in fields)


def header_text(message: Message, name: str) -> str:
    """Return a header as people read it, up to LONGEST; empty if the message has none."""
    return words_of(_raw(message, name))


def words_of(raw: str) -> str:
    """Return the text of a header with encoded words (RFC 2047) or bytes that are no ASCII."""
    try:
        words = decode_header(_characters(raw[:LONGEST]))
    except (ValueError, MessageError):  # an encoded word in broken Base64
        words = [(raw[:LONGEST], None)]
    texts = [_text(word, charset) for word, charset in words]
    return " ".join("".join(texts).split())


def _text(word: str | bytes, charset: str | None) -> str:
    """Return a part of a header as `decode_header` returns it: text, or the bytes of a word.

    charset: None for what is no encoded word, but stands beside one; it is raw-unicode-escape then.
    """
    if isinstance(word, str):
        return word
    if charset is not None:
        return _word(word, charset)
    escaped = word.decode("latin-1")
    return _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), escaped)


def declared_charset(label: str) -> str:
    """Return the encoding with this label in e-mails; empty if it is unknown or says nothing.

    Labels mean what they mean in browsers: ISO-8859-1 is Windows-1252.
    """
    name = label.strip().lower()
    return "" if name in UNDECLARED else usable_encoding(name) or ""


def decoded_as(raw: bytes, encoding: str) -> str | None:
    """Return text in the declared encoding, or in UTF-8 if none is; None if it is in neither."""
    return decode_as_declared(raw, encoding or "utf-8")


def _raw(message: Message, name: str) -> str:
    """Return the first header of this name, with bytes that are no ASCII as surrogates."""
    return next((str(v) for n, v in message.raw_items() if n.lower() == name), "")


def _characters(raw: str) -> str:
    """Return a header with bytes that are no ASCII decoded."""
    return raw if raw.isascii() else _word(raw.encode("utf-8", "surrogateescape"), "")


def _word(raw: bytes, charset: str) -> str:
    text = decoded_as(raw, declared_charset(charset))
    return raw.decode("cp1252", "replace") if text is None else text


def _people(message: Message, name: str) -> str:
    """Return the names and addresses of a header; the header itself if it has no addresses."""
    raw = _raw(message, name)[:LONGEST]
    try:
        addresses = getaddresses([raw])
    except RecursionError:  # thousands of parentheses
        addresses = []
    found = [(words_of(who), address) for who, address in addresses if address]
    listed = [f"{who} <{address}>" if who else address for who, address in found]
    # a field to filter by may not look like a list in JSON
    return (words_of(", ".join(listed)) or words_of(raw)).lstrip("[")


def _date(message: Message) -> str:
    """Return the date in UTC; empty if there is none, or it is no date."""
    try:
        date = parsedate_to_datetime(_raw(message, "date")[:100])
        if date.year < 1000:  # three digits, which count from 1900: RFC 5322, 4.3
            date = date.replace(year=1900 + date.year)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)  # -0000: in UTC, somewhere
        return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, TypeError, OverflowError, OSError, IndexError):
        return ""
