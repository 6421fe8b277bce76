"""How is the text of a PDF file read, so that page numbers can be found again?"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from birchbark.collection.file_readers.file import Fields, File, stated_title
from birchbark.collection.file_readers.ocr import Ocr
from birchbark.collection.file_readers.pdf_entries import entries
from birchbark.errors import InputError
from birchbark.records import PAGE_BREAK

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfTextPage

_LINE_BREAK = re.compile(r"(?<=\S)[^\S\n]*+\n\s*+(?=\S)")
_HYPHEN = re.compile("[\x02\ufffe]\\s*")  # PDFium's mark for a hyphen at the end of a line
_CAPITALS, _CAPITALS_LAST = re.compile("[A-Z]+"), re.compile(r"(?<![A-Z])[A-Z]++\Z")
_COMPOUND = re.compile(r"\b[^\W\d_]+-[^\W\d_]+\b")
_LETTERS, _LAST_LETTERS = re.compile(r"[^\W\d_]+"), re.compile(r"(?<![^\W\d_])[^\W\d_]++\Z")
LONGEST_WORD = 50  # letters


def read_pdf(file: File) -> Fields:
    """Return the title that the file states, and the text of its pages, separated by form feeds.

    Words that are divided at the end of a line are joined. A page's text is followed by the values
    of form fields and by comments. A scanned page has no text; it is read by OCR if tesseract is
    installed, and noted in any case. Raises InputError for a damaged file, and for one that needs a
    password.
    """
    import pypdfium2

    ocr = Ocr(file.intake)
    try:
        with pypdfium2.PdfDocument(file.raw) as document:
            title = stated_title(document.get_metadata_value("Title"))
            if document.get_formtype():
                document.init_forms()
            texts = [_read_page(document, index, ocr) for index in range(len(document))]
    except pypdfium2.PdfiumError as error:
        raise InputError(f"the PDF cannot be read: {error}") from None
    for _ in range(texts.count(None)):
        file.intake.note("damaged page of a PDF not read")
    if texts.count(None) == len(texts):
        raise InputError("the PDF cannot be read: it has no pages, or they are all damaged")
    whole = " ".join(filter(None, texts))
    known = {*_CAPITALS.findall(whole), *map(str.lower, _COMPOUND.findall(whole))}
    pages = (_join_divided(text or "", known) for text in texts)
    return {"title": title, "text": f"\n{PAGE_BREAK}".join(pages).rstrip()}


def _read_page(document: PdfDocument, index: int, ocr: Ocr) -> str | None:
    """Return the text of a page; None if it is damaged."""
    from pypdfium2 import PdfiumError

    try:
        page = document[index]
        text = _page_text(page.get_textpage()).strip()
        if not text and next(page.get_objects(), None):
            text = ocr.read(page)
        return "\n\n".join(filter(None, (text, "\n".join(entries(page)))))
    except PdfiumError:
        return None


def _page_text(page: PdfTextPage) -> str:
    """Return the text of a page, with a space where PDFium breaks a line at a wide gap."""
    text = page.get_text_range()  # unlike get_text_bounded, it keeps the breaks at gaps
    two_units = [at for at, character in enumerate(text) if character > "\uffff"]
    pieces, end = list[str](), 0
    for found in _LINE_BREAK.finditer(text):
        # PDFium counts units of UTF-16.
        sides = (at + bisect_left(two_units, at) for at in (found.start() - 1, found.end()))
        if _on_one_line(*(_box(page, index) for index in sides)):
            pieces += text[end : found.start()], " "
            end = found.end()
    return "".join([*pieces, text[end:]]).replace("\r\n", "\n").replace("\r", " ")


def _box(page: PdfTextPage, index: int) -> tuple[float, float]:
    """Return where the line of a character begins and ends, from the page's bottom, in points.

    Equal numbers if that is not known.
    """
    from pypdfium2 import PdfiumError, raw

    try:
        character = raw.FPDFText_GetCharIndexFromTextIndex(page, index)
        _, low, _, high = page.get_charbox(character, loose=True)
    except PdfiumError:
        return 0.0, 0.0
    return low, high


def _on_one_line(first: tuple[float, float], second: tuple[float, float]) -> bool:
    """Whether characters are side by side: half the height of the smaller one, or more."""
    (low, high), (other_low, other_high) = first, second
    smaller = min(high - low, other_high - other_low)
    return 2 * (min(high, other_high) - max(low, other_low)) >= smaller > 0


def _join_divided(text: str, known: set[str]) -> str:
    """Return the text without the hyphens that divide a word at the end of a line.

    A hyphen belongs to the word beside a digit or capital, as in COVID-19 and Jean-Paul, and in a
    compound that the file has elsewhere. It divides one that is in capitals if the file has the
    whole word elsewhere. known: the words in capitals, and the compounds in lower case.
    """

    def joined(found: re.Match[str]) -> str:
        before, after = (
            text[max(0, found.start() - LONGEST_WORD) : found.start()],
            text[found.end() : found.end() + LONGEST_WORD],
        )
        beside = before[-1:] + after[:1]
        if not after or any(character.isdigit() or character.isupper() for character in beside):
            ends = _CAPITALS_LAST.search(before), _CAPITALS.match(after)
            word = "".join(end[0] for end in ends if end)
            return "" if all(ends) and word in known else "-"
        sides = _LAST_LETTERS.search(before), _LETTERS.match(after)
        compound = "-".join(side[0].lower() for side in sides if side)
        return "-" if compound in known else ""

    return _HYPHEN.sub(joined, text)
