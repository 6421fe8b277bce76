"""What does a reader of a file type get, and what does it return?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from birchbark.collection.file_readers.text_encoding import decode_text
from birchbark.collection.parsing.intake import Intake

Fields = dict[str, str]
NO_TITLES = {"(anonymous)", "untitled", "powerpoint presentation"}
_DIVIDED = re.compile(r"\xad[ \t]*\r?\n[ \t]*")  # a word, by a soft hyphen


@dataclass(frozen=True, slots=True)
class File:
    """A file whose bytes have been read.

    Attributes:
        path: Where the file is.
        raw: Its bytes; decompressed, if the file is compressed.
        intake: Has the encoding of text files, and is told which encodings were detected.
    """

    path: Path
    raw: bytes
    intake: Intake

    def decode(self, *, markup: bool = False) -> str:
        """Return the text of the file, without soft hyphens at ends of lines; see `decode_text`."""
        text = decode_text(self.raw, self.path, self.intake, markup=markup)
        return _DIVIDED.sub("", text) if "\xad" in text else text


def stated_title(text: str) -> str:
    """Return the title that a file states, on one line; empty for what programs write for none."""
    title = " ".join(text.split())
    return "" if title.lower() in NO_TITLES else title


@dataclass(frozen=True, slots=True)
class ContainedFile:
    """A file within a file, such as an attachment, which is read by the reader of its type.

    Attributes:
        name: Its name, which need not be unique; the suffix indicates its type.
        raw: Its bytes.
        fields: What its own document has if its reader does not find anything better, such as a
            title, or the date of the e-mail. Default: nothing.
    """

    name: str
    raw: bytes
    fields: Fields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a file that may become several documents.

    Attributes:
        fields: Those of the file's own document; None if it is nothing but a container.
        files: The files that it contains, in their order.
    """

    fields: Fields | None
    files: Iterable[ContainedFile] = ()


# Raises InputError for a file that cannot be read: UnreadableError if that does not depend on its
# bytes, so that it is read again.
ReadFile = Callable[[File], Fields | Contents]
