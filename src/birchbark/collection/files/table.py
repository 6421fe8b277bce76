"""How do the rows of a table in a text file become text that can be searched and read?"""

from __future__ import annotations

import csv
import io
import re
from itertools import islice

from birchbark.collection.files.file import Fields, File
from birchbark.errors import InputError

DELIMITERS = ",;\t|"
SAMPLE = 20  # lines from which the delimiter is guessed
_EXCEL = re.compile(r"sep=(.)")


def read_table(file: File) -> Fields:
    """Return each row as a paragraph, `name: value; name: value`, without empty cells.

    The names are those of the first row if its cells are distinct, not empty and no numbers;
    otherwise only the values are given. The delimiter is stated by a first line such as `sep=;`, or
    is that of DELIMITERS which divides the first lines into the same number of cells, more than
    one. Raises InputError for text that cannot be divided into cells.
    """
    # not str.splitlines, which also breaks lines within a cell, at U+2028 and others
    lines = io.StringIO(file.decode(), newline="").readlines()
    stated = _EXCEL.fullmatch(lines[0].rstrip()) if lines else None
    if stated:  # Excel's first line, which names the delimiter
        lines = lines[1:]
    delimiter = stated[1] if stated else _delimiter(lines)
    try:
        rows = [row for row in _rows(lines, delimiter) if any(row)]
    except csv.Error as error:
        raise InputError(f"not a table: {error}") from error
    names = rows[0] if rows and _are_names(rows[0]) else []
    paragraphs = []
    for row in rows[1:] if names else rows:
        cells = [" ".join(cell.split()) for cell in row]
        named = [
            f"{name.strip()}: {cell}" for name, cell in zip(names, cells, strict=False) if cell
        ]
        unnamed = [cell for cell in cells[len(names) :] if cell]
        paragraphs.append("; ".join([*named, *unnamed]))
    return {"title": "", "text": "\n\n".join(paragraphs)}


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    """Return the cells of each row; quotation marks have no meaning if one is not closed."""
    try:
        return list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        if "end of data" in str(error):
            return list(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE))
    return list(csv.reader(lines, delimiter=delimiter))


def _delimiter(lines: list[str]) -> str:
    """Return the delimiter that divides the first lines evenly, into the most cells; else comma."""
    best, most = ",", 1
    for delimiter in DELIMITERS:
        widths = {len(row) for row in islice(csv.reader(lines, delimiter=delimiter), SAMPLE) if row}
        if len(widths) == 1 and (width := widths.pop()) > most:
            best, most = delimiter, width
    return best


def _are_names(row: list[str]) -> bool:
    names = [cell.strip() for cell in row]
    return all(names) and len(set(names)) == len(names) and not any(map(_is_number, names))


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").isdecimal()
