"""How is an e-mail read: its headers as fields, its text, and the files that are attached?"""

from __future__ import annotations

import mimetypes
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from functools import cached_property
from itertools import islice

from birchbark.collection.file_readers.file import ContainedFile, Contents, Fields, File
from birchbark.collection.file_readers.mail_headers import (
    LONGEST,
    SHORT_HEADERS,
    declared_charset,
    decoded_as,
    has_long_header,
    header_fields,
    header_lines,
    header_text,
    words_of,
)
from birchbark.collection.file_readers.text_encoding import decode_text
from birchbark.collection.parsing.lines import UTF8_BOM
from birchbark.collection.parsing.markup import plain_text
from birchbark.errors import InputError, first_line

MOST_ATTACHMENTS = 200  # of one message
MOST_PARTS_NESTED = 20  # parts in parts of one message
STUB_WORDS, STUB_SHARE = 10, 2  # another alternative has more than that and so many times more
PLAIN, HTML = "text/plain", "text/html"
REPORTS = ("status", "notification", "report")  # message/delivery-status and its like
ANY = "application/octet-stream"


@dataclass(frozen=True)
class _Piece:
    """A part of a message that has no parts: text that mail programs show, or else attached."""

    part: Message
    kind: str
    shown: bool
    file: File

    @cached_property
    def text(self) -> str:
        """The text of the part, in the encoding that it declares or, if that fails, another."""
        raw = self.part.get_payload(decode=True)
        assert isinstance(raw, bytes)
        encoding = declared_charset(str(self.part.get_param("charset", "")))
        text = _decoded(raw, encoding, self).replace("\r\n", "\n")
        return (plain_text(text)[1] if self.kind == HTML else text).strip()


def read_mail(file: File) -> Contents:
    """Return the subject, the text and the headers of a message (RFC 5322), and its attachments.

    The text is that of all parts that mail programs show. Of alternatives, plain text is read, or
    HTML if that is blank or a stub. It begins with the names and addresses, so that they are
    searched as well. Attached messages are contained files, too. The fields are `from`, `to`, `cc`
    and `date`, in UTC, which attachments inherit, and `title` and `authors`. Raises InputError for
    a message that cannot be taken apart.
    """
    try:
        raw = file.raw.removeprefix(UTF8_BOM).lstrip()  # as mail programs do
        message = message_from_bytes(raw, policy=SHORT_HEADERS)
        pieces = list(_pieces(message, file, 0))
        shown = [piece.text for piece in pieces if piece.shown and piece.text]
        headers = header_fields(message)
        if has_long_header(message):
            file.intake.note(f"header of an e-mail not read after {LONGEST:,} characters")
        title = header_text(message, "subject")
        attached = list(_attachments([p for p in pieces if not p.shown], file, headers))
    except (InputError, MemoryError):
        raise
    except Exception as error:  # the email package raises errors of many kinds for damaged messages
        raise InputError(f"the message cannot be decoded: {first_line(error)}") from None
    fields = {
        **headers,
        "title": title,
        "text": "\n\n".join(filter(None, [header_lines(headers), *shown])),
        "authors": headers.get("from", ""),
    }
    return Contents(fields, attached)


def _pieces(part: Message, file: File, nested: int) -> Iterator[_Piece]:
    """Yield the parts of a message that have no parts, in their order."""
    kind, inner = part.get_content_type(), part.get_payload()
    if part.get_content_maintype() == "message" or not isinstance(inner, list):
        is_file = part.get_filename() is not None and nested
        attached = is_file or part.get_content_disposition() == "attachment"
        yield _Piece(part, kind, kind in (PLAIN, HTML) and not attached, file)
    elif nested == MOST_PARTS_NESTED:
        file.intake.note(f"part of an e-mail within {MOST_PARTS_NESTED} others not read")
    else:
        of_parts = [list(_pieces(p, file, nested + 1)) for p in inner if isinstance(p, Message)]
        if kind == "multipart/alternative":
            chosen = _best(of_parts)
            of_parts = [p if p is chosen else [q for q in p if not q.shown] for p in of_parts]
        yield from (piece for pieces in of_parts for piece in pieces)


def _best(alternatives: list[list[_Piece]]) -> list[_Piece] | None:
    """Return the alternative to read: the first one in plain text, else the last one with text.

    Plain text with far fewer words than another alternative only says to look there.
    """
    words = [sum(len(p.text.split()) for p in a if p.shown) for a in alternatives]
    with_text = [(a, count) for a, count in zip(alternatives, words, strict=True) if count]
    is_plain = ((a, count) for a, count in with_text if all(p.kind == PLAIN for p in a if p.shown))
    plain = [a for a, count in is_plain if STUB_WORDS + STUB_SHARE * count >= max(words)]
    return plain[0] if plain else with_text[-1][0] if with_text else None


def _decoded(raw: bytes, encoding: str, piece: _Piece) -> str:
    """Return the text of a part. encoding: the one that it declares; empty for none."""
    text = decoded_as(raw, encoding)
    if text is not None:
        return text
    try:
        return decode_text(raw, piece.file.path, piece.file.intake, markup=piece.kind == HTML)
    except InputError:
        piece.file.intake.note("e-mail in no known encoding, read as Windows-1252")
        return raw.decode("cp1252", errors="replace")


def _message(part: Message, inner: Message) -> bytes:
    """Return an attached message, also one in base64, which is not allowed but read by programs."""
    raw = inner.as_bytes()
    encoding = str(part.get("content-transfer-encoding", "")).strip().lower()
    return b64decode(raw.strip()) if encoding == "base64" else raw


def _attachments(attached: list[_Piece], file: File, headers: Fields) -> Iterator[ContainedFile]:
    """Yield the attached files. headers: what their documents inherit."""
    for piece in islice(attached, MOST_ATTACHMENTS):
        try:
            found = _attachment(piece, headers)
        except Exception:  # as when a message declares parts, but has none
            file.intake.note("attachment of an e-mail not read, since it is damaged")
        else:
            yield found
    for _ in attached[MOST_ATTACHMENTS:]:
        file.intake.note(f"attachment after the first {MOST_ATTACHMENTS} of an e-mail not read")


def _attachment(piece: _Piece, headers: Fields) -> ContainedFile:
    inner = piece.part.get_payload()
    parts = inner if isinstance(inner, list) else []
    messages = [each for each in parts if isinstance(each, Message)]
    if messages and not piece.kind.endswith(REPORTS):
        return ContainedFile("message.eml", _message(piece.part, messages[0]))
    # A report on a message is headers alone, such as those that say why it was not delivered.
    raw = b"\n".join(map(Message.as_bytes, messages)) or piece.part.get_payload(decode=True)
    path = words_of(piece.part.get_filename() or "").replace("\\", "/")
    name = path.rpartition("/")[2] or "attachment"
    suffix = "" if piece.kind == ANY else mimetypes.guess_extension(piece.kind) or ""
    is_mail = ".eml" in (suffix, name[-4:].lower())
    inherited = {} if is_mail else {**headers, "title": name}
    return ContainedFile(name, raw if isinstance(raw, bytes) else b"", inherited, suffix)
