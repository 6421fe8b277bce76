"""Which types of files are read, and how is each recognised?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from birchbark.collection.file_readers.file import ReadFile
from birchbark.collection.file_readers.mail import read_mail
from birchbark.collection.file_readers.mbox import is_mailbox, read_mbox
from birchbark.collection.file_readers.pandoc import (
    is_manual_page,
    pandoc_reader,
    read_manual_page,
)
from birchbark.collection.file_readers.pdf import read_pdf
from birchbark.collection.file_readers.plain import (
    is_text,
    read_code,
    read_html,
    read_markdown,
    read_restructured_text,
    read_text,
)
from birchbark.collection.file_readers.slides import read_odp, read_pptx
from birchbark.collection.file_readers.spreadsheet import read_spreadsheet
from birchbark.collection.file_readers.table import read_table
from birchbark.collection.parsing.lines import COMPRESSED, uncompressed_name

PANDOC = "pypandoc"  # the package that contains it
REMEDY = "pip install 'birchbark[files]'"
# Of archives, videos, pictures and Thunderbird's summaries, though their names may look like text.
NO_TEXT = tuple(
    ".7z .3gp .3g2 .avi .exe .gif .heic .iso .jpeg .jpg .mkv .mov .mp3 .mp4 .msf .png .tif .tiff "
    ".wav .zip".split()
)
_NO_SUFFIX = re.compile(r"|\.\d+|\..*[\s-].*")  # Apache-2.0, Meeting on 3. May, 0.30-ReleaseNotes
_MANUAL_SECTION = re.compile(r"\.[1-9][a-z]{0,6}")  # .1, .3pm, .1ssl


@dataclass(frozen=True, slots=True)
class FileType:
    """A type of files.

    Attributes:
        name: Name of the type, which searches can filter by.
        read: Reads a file of this type.
        package: The package that `read` needs. Default: it needs none.
        accepts: Whether the bytes of a file are of this type, where its name alone does not tell.
    """

    name: str
    read: ReadFile
    package: str = ""
    accepts: Callable[[bytes], bool] | None = None

    def missing(self) -> str:
        """Return how to install what is missing to read this type; empty if nothing is."""
        return REMEDY if self.package and find_spec(self.package) is None else ""


def _by_pandoc(name: str, format_name: str) -> FileType:
    return FileType(name, pandoc_reader(format_name), PANDOC)


TEXT = FileType("text", read_text)
CODE = FileType("code", read_code)
MANUAL_PAGE = FileType("manual page", read_manual_page, PANDOC, is_manual_page)
NAMED_LIKE_TEXT = FileType("text", read_text, accepts=is_text)
MAILBOX = FileType("mailbox", read_mbox)
MARKDOWN, HTML = FileType("markdown", read_markdown), FileType("html", read_html)
OF_SUFFIX = {
    **dict.fromkeys((".txt", ".text"), TEXT),
    **dict.fromkeys((".md", ".markdown"), MARKDOWN),
    ".rst": FileType("restructuredtext", read_restructured_text),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys((".csv", ".tsv"), FileType("table", read_table)),
    ".pdf": FileType("pdf", read_pdf, "pypdfium2"),
    ".eml": FileType("email", read_mail),
    ".mbox": MAILBOX,
    ".docx": _by_pandoc("word", "docx"),
    ".pptx": FileType("powerpoint", read_pptx),
    ".odp": FileType("opendocument", read_odp),
    **dict.fromkeys(
        (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"),
        FileType("spreadsheet", read_spreadsheet, "python_calamine"),
    ),
    ".odt": _by_pandoc("opendocument", "odt"),
    ".rtf": _by_pandoc("rtf", "rtf"),
    ".epub": _by_pandoc("epub", "epub"),
    ".ipynb": _by_pandoc("notebook", "ipynb"),
    ".tex": _by_pandoc("latex", "latex"),
    ".org": _by_pandoc("org", "org"),
    **dict.fromkeys(
        (
            ".bash .c .cc .clj .cpp .cs .css .cxx .dart .el .erl .ex .exs .f90 .go .h .hh .hpp .hs "
            ".java .jl .js .jsx .kt .lisp .lua .m .mjs .ml .mli .php .pl .pm .py .pyi .pyx .r .rb "
            ".rs .scala .scm .sh .sql .swift .tcl .ts .tsx .v .vb .vim .vue .zig .zsh"
        ).split(),
        CODE,
    ),
}


def type_by_contents(kind: FileType, raw: bytes) -> FileType:
    """Return the type of a file whose name indicates `kind`, by its bytes if that tells little."""
    if kind is MANUAL_PAGE and not is_manual_page(raw):
        kind = NAMED_LIKE_TEXT  # GFDL-1.3
    return MAILBOX if kind is NAMED_LIKE_TEXT and is_mailbox(raw) else kind


def name_with_type(name: str, suffix: str) -> str:
    """Return a name with the suffix of a declared type, unless it indicates a type itself.

    The last dot of `Offer No. 12` or `Report v1.2` begins no suffix.
    """
    tells = file_type(Path(name)) not in (None, MANUAL_PAGE, NAMED_LIKE_TEXT)
    return name if tells or name.lower().endswith(suffix) else f"{name}{suffix}"


def suffixes(path: Path) -> str:
    """Return the suffix, of a compressed file with the one before it; `no suffix` without any."""
    before = Path(path.stem).suffix if path.suffix.lower() in COMPRESSED else ""
    return f"{before}{path.suffix}" or "no suffix"


def file_type(path: Path) -> FileType | None:
    """Return the type of the file that its name indicates; None if that type is not read.

    Of a compressed file, the suffix before .gz, .bz2, .xz, .zst or .Z counts. A name without a
    known suffix indicates plain text if it has none at all, or only a number, or several words, or
    begins with a word in capitals or with `changelog`: README, Apache-2.0, NEWS.Debian.
    """
    name = uncompressed_name(path)
    first, suffix = name.split(".")[0], Path(name).suffix
    if _MANUAL_SECTION.fullmatch(suffix) and suffix not in NO_TEXT:
        return MANUAL_PAGE
    known = OF_SUFFIX.get(suffix.lower())
    known_beginning = first.isupper() or first.lower() == "changelog"
    like_text = known_beginning or _NO_SUFFIX.fullmatch(suffix)
    if suffix.lower() in NO_TEXT:
        return None
    return NAMED_LIKE_TEXT if known is None and like_text else known
