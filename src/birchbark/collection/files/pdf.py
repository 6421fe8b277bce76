"""How is the text of a PDF file read, so that page numbers can be found again?"""

from __future__ import annotations

import re
from importlib.util import find_spec

from birchbark.collection.files.file import Fields, File
from birchbark.errors import InputError

PAGE_BREAK = "\f"  # precedes every page but the first one
PLACEHOLDERS = {"(anonymous)", "untitled"}  # that programs write for lack of a title
_HYPHENATED = re.compile("[\x02\ufffe]\\s*")  # PDFium's mark for a word that goes on


def pdfium_installed() -> bool:
    """Return whether the package that reads PDF files is installed."""
    return find_spec("pypdfium2") is not None


def read_pdf(file: File) -> Fields:
    """Return the title that the file states, and the text of its pages, separated by form feeds.

    Words that are divided at the end of a line are joined. A scanned page has no text. Raises
    InputError for a damaged file, and for one that needs a password.
    """
    import pypdfium2

    try:
        with pypdfium2.PdfDocument(file.raw) as document:
            title = " ".join(document.get_metadata_value("Title").split())
            pages = [page.get_textpage().get_text_bounded() for page in document]
    except pypdfium2.PdfiumError as error:
        raise InputError(f"the PDF cannot be read: {error}") from None
    texts = (_HYPHENATED.sub("", page).replace("\r\n", "\n").strip() for page in pages)
    title = "" if title.lower() in PLACEHOLDERS else title
    return {"title": title, "text": f"\n{PAGE_BREAK}".join(texts).rstrip()}
