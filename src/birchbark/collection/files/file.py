"""What does a reader of a file type get, and what does it return?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from birchbark.collection.files.text_encoding import decode_text
from birchbark.collection.parsing.intake import Intake

Fields = dict[str, str]


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
        """Return the text of the file; see `decode_text`."""
        return decode_text(self.raw, self.path, self.intake, markup=markup)


ReadFile = Callable[[File], Fields]  # raises InputError for a file that cannot be read
