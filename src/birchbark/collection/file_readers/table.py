"""How do the rows of a table in a text file become text that can be searched and read?"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from itertools import islice

from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.parsing.lines import MAX_FILE
from birchbark.errors import InputError

DELIMITERS = ",;\t|"
SAMPLE = 20  # lines from which the delimiter is guessed
_EXCEL = re.compile(r"sep=(.)")


def read_table(file: File) -> Fields:
    """Return each row as a paragraph: see `row_paragraphs`.

    The delimiter is stated by a first line such as `sep=;`, or
    is that of DELIMITERS which divides the first lines into the same number of cells, more than
    one. Raises InputError for text that cannot be divided into cells.
    """
    limit = max(MAX_FILE, csv.field_size_limit())  # a file and its text are limited otherwise
    csv.field_size_limit(limit)
    # not str.splitlines, which also breaks lines within a cell, at U+2028 and others
    lines = io.StringIO(file.decode(), newline="").readlines()
    stated = _EXCEL.fullmatch(lines[0].rstrip("\r\n")) if lines else None
    if stated:  # Excel's first line, which names the delimiter
        lines = lines[1:]
    try:
        delimiter = stated[1] if stated else _delimiter(lines)
        rows = [row for row in _rows(lines, delimiter) if any(row)]
    except csv.Error as error:
        raise InputError(f"not a table: {error}") from error
    return {"title": "", "text": "\n\n".join(row_paragraphs(rows))}


def row_paragraphs(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return each row as a paragraph, `name: value; name: value`, without empty cells.

    The names are those of the first row if its cells are distinct, not empty but for the first one,
    and no numbers; otherwise only the values are given. Rows with one cell before wider ones, such
    as a title, are paragraphs of their own, and so are the names of columns without values. rows:
    without empty ones.
    """
    widths = [sum(map(bool, row)) for row in rows]
    first = next((number for number, width in enumerate(widths) if width > 1), 0)
    names = rows[first] if rows and _are_names(rows[first]) else []
    rest = rows[first + bool(names) :]
    paragraphs = [" ".join("".join(row).split()) for row in rows[:first]]
    filled = {place for row in rest for place, cell in enumerate(row) if cell.strip()}
    unused = [name.strip() for place, name in enumerate(names) if place not in filled]
    paragraphs += ["; ".join(unused)] if unused else []
    for row in rest:
        cells = [" ".join(cell.split()) for cell in row]
        named = [
            f"{name.strip()}: {cell}" if name.strip() else cell
            for name, cell in zip(names, cells, strict=False)
            if cell
        ]
        unnamed = [cell for cell in cells[len(names) :] if cell]
        paragraphs.append("; ".join([*named, *unnamed]))
    return paragraphs


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


def _are_names(row: Sequence[str]) -> bool:
    names = [cell.strip() for cell in row]
    if len(names) > 2 and not names[0]:  # that of the rows' numbers, as pandas writes them
        del names[0]
    return all(names) and len(set(names)) == len(names) and not any(map(_is_number, names))


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").isdecimal()
