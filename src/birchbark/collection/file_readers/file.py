"""What does a reader of a file type get, and what does it return?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from birchbark.collection.file_readers.text_encoding import decode_text
from birchbark.collection.parsing.intake import Intake

Fields = dict[str, str]
NO_TITLES = {"(anonymous)", "untitled"}
POWERPOINT = "powerpoint"
# The titles of its presentations without a title consist of these words, in its languages.
PRESENTATION = frozenset(
    (
        f"{POWERPOINT} apresentação bemutató esitlus esitys pateiktis predstavitev presentación "
        "presentació presentasi presentasjon presentatie presentation presentazione prezentace "
        "prezentacija prezentacja prezentare prezentácia prezentācija présentation præsentation "
        "präsentation sunusu παρουσίαση презентация презентація プレゼンテーション 演示文稿 簡報 "
        "프레젠테이션 "
        "aplikace de del di do programu standard του на"
    ).split()
)
_PROGRAM = re.compile("^Microsoft (?:Word|PowerPoint|Excel) - ")
_LINE_END = re.compile(r"\xad[ \t]*\n[ \t]*")  # within a word, after a soft hyphen
_DIVIDED = re.compile(r"\xad(?:(?<=\xad)[ \t]*\n[ \t]*\S*)+[ \t]*")


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
        """Return the text of the file; see `decode_text`.

        A line that ends in a soft hyphen has the rest of the word as well.
        """
        text = decode_text(self.raw, self.path, self.intake, markup=markup)
        return _DIVIDED.sub(_on_one_line, text)


def _on_one_line(rest: re.Match[str]) -> str:
    """Return the rest of a word on one line, and then as many line breaks as it had."""
    return _LINE_END.sub("", rest[0]).rstrip(" \t") + "\n" * rest[0].count("\n")


def stated_title(text: str) -> str:
    """Return the title that a file states, on one line; empty for what programs write for none."""
    title = _PROGRAM.sub("", " ".join(text.split()), count=1)
    lower = title.lower()
    is_default = {POWERPOINT} < set(re.split("[ -]", lower)) <= PRESENTATION
    return "" if is_default or lower in NO_TITLES else title


@dataclass(frozen=True, slots=True)
class ContainedFile:
    """A file within a file, such as an attachment, which is read by the reader of its type.

    Attributes:
        name: Its name, which need not be unique; the suffix indicates its type.
        raw: Its bytes.
        fields: What its own document has if its reader does not find anything better, such as a
            title, or the date of the e-mail. Default: nothing.
        suffix: That of its declared type, which indicates the type if the name tells little.
            Default: empty.
    """

    name: str
    raw: bytes
    fields: Fields = field(default_factory=dict)
    suffix: str = ""


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
