"""How do the sheets of a workbook become text that can be searched and read?"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any

from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.file_readers.plain import is_text, read_html
from birchbark.collection.file_readers.table import first_blocks, read_table, row_paragraphs
from birchbark.errors import InputError, first_line

OF_WORKBOOKS = (b"PK", b"\xd0\xcf\x11\xe0")  # how their files begin
BEFORE_MARKUP = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"  # byte order marks and white space
MOST_CELLS = 5_000_000
MOST_PLACES = 20_000_000  # of a sheet, most of them empty: its rows times its columns
MOST_CHARACTERS = 50_000_000  # a text that is in many cells is in the file once


def read_spreadsheet(file: File) -> Fields:
    """Return the name of each sheet, followed by its rows as paragraphs: see `row_paragraphs`.

    Dates are written as in ISO 8601, and numbers without decimals that they do not have. What
    exceeds MOST_CELLS or MOST_CHARACTERS is noted, and sheets of more than MOST_PLACES. A web page
    or a table in text, which programs export with the suffix .xls, is read as such. Raises
    InputError for a file that is damaged, or protected.
    """
    if not file.raw.startswith(OF_WORKBOOKS) and is_text(file.raw):
        is_markup = file.raw.lstrip(BEFORE_MARKUP).startswith(b"<")
        return read_html(file) if is_markup else read_table(file)
    try:
        sheets, is_cut = _sheets(file)
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a panic of the library is no Exception
        reason = first_line(error) or type(error).__name__
        if "detect file format" in reason:  # what calamine also says of encrypted ones
            reason = "it is damaged, or protected by a password"
        raise InputError(f"the spreadsheet cannot be read: {reason}") from None
    blocks = (block for name, rows in sheets if rows for block in (name, *row_paragraphs(rows)))
    kept, more = first_blocks(blocks, MOST_CHARACTERS)
    if is_cut or more:
        file.intake.note(
            f"spreadsheet not read after {MOST_CELLS:,} cells or {MOST_CHARACTERS:,} characters"
        )
    return {"title": "", "text": "\n\n".join(kept)}


def _sheets(file: File) -> tuple[list[tuple[str, list[list[str]]]], bool]:
    """Return name and rows of each sheet, and whether that would exceed a limit."""
    import python_calamine

    workbook = python_calamine.load_workbook(BytesIO(file.raw))
    sheets: list[tuple[str, list[list[str]]]] = []
    cells = characters = 0
    for name in workbook.sheet_names:
        rows: list[list[str]] = []
        sheets.append((name, rows))
        sheet = workbook.get_sheet_by_name(name)
        if sheet.total_height * sheet.total_width > MOST_PLACES:
            file.intake.note(f"sheet not read with more than {MOST_PLACES:,} places for cells")
            continue
        for row in sheet.iter_rows():
            texts = [shown(value) for value in row]
            while texts and not texts[-1]:
                texts.pop()
            if texts:
                rows.append(texts)
                cells += sum(map(bool, texts))
                characters += sum(map(len, texts))
            if cells > MOST_CELLS or characters > MOST_CHARACTERS:
                rows.pop()
                return sheets, True
    return sheets, False


def shown(value: Any) -> str:
    """Return the text of a cell as people see it, as far as the workbook's formats are known."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        whole = isinstance(value, int) or value.is_integer()
        return str(int(value)) if whole and abs(value) < 1e18 else f"{value:.15g}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "auto" if value.microsecond else "seconds").removesuffix(":00")
    if isinstance(value, time):
        return value.isoformat().removesuffix(":00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    return " ".join(str(value).split())
