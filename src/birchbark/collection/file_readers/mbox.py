"""How is a mailbox divided into its messages?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b

from birchbark.collection.file_readers.file import ContainedFile, Contents, File
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import UTF8_BOM
from birchbark.errors import InputError

# The line before each message: From, and mostly the sender and a date. A header follows.
_FROM = re.compile(rb"^From [^\n]*\n(?=[!-9;-~]{1,100}:)", re.MULTILINE)
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_ID = re.compile(rb"^message-id:\s*(<[^>\s]{1,300}>)", re.IGNORECASE | re.MULTILINE)
_STATUS = re.compile(rb"^x-mozilla-status: *([0-9a-f]{4})\b", re.IGNORECASE | re.MULTILINE)
EXPUNGED = 0x8  # a bit of it
_END = re.compile(rb"\r?\n\r?\n")


def read_mbox(file: File) -> Contents:
    """Return the messages of a mailbox, each of which becomes a document of its own.

    They are named by their Message-ID, so that a message keeps its doc_id when others are deleted.
    Raises InputError for a file that does not begin as a mailbox.
    """
    raw = file.raw.removeprefix(UTF8_BOM).lstrip()
    if raw and not _FROM.match(raw):
        raise InputError("not a mailbox", wanted="a first line such as From ann@example.org DATE")
    return Contents(None, _messages(raw, file.intake))


def is_mailbox(raw: bytes) -> bool:
    """Return whether a file begins as a mailbox does, which mail programs name without a suffix."""
    return bool(_FROM.match(raw))


def _messages(raw: bytes, intake: Intake) -> Iterator[ContainedFile]:
    """Yield the messages, without the lines before them and the quotation marks of mboxrd."""
    starts = [found for found in _FROM.finditer(raw) if _after_blank(raw, found.start())]
    if not starts:
        intake.note("mailbox without messages not read")
        return
    ends = [found.start() for found in starts[1:]]
    for start, end in zip(starts, [*ends, len(raw)], strict=True):
        message = _QUOTED.sub(rb"\1", raw[start.end() : end])
        if _is_deleted(message):
            intake.note("deleted e-mail not read, which the mail program has not removed yet")
            continue
        yield ContainedFile(f"{_name(message)}.eml", message)


def _after_blank(raw: bytes, start: int) -> bool:
    """Return whether a line follows a blank one, or is the first one."""
    return not start or raw[max(0, start - 3) : start].endswith((b"\n\n", b"\n\r\n"))


def _is_deleted(message: bytes) -> bool:
    """Return whether Thunderbird has marked a message as expunged, as it does with moved ones."""
    found = _STATUS.search(_headers(message))
    return found is not None and int(found[1], 16) & EXPUNGED > 0


def _headers(message: bytes) -> bytes:
    end = _END.search(message)
    return message[: end.start()] if end else message


def _name(message: bytes) -> str:
    """Return a short name that depends on the Message-ID, or on all of a message without one."""
    found = _ID.search(_headers(message))
    return blake2b(found[1] if found else message, digest_size=6).hexdigest()
