"""How do the rows of a table in a text file become text that can be searched and read?"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.parsing.lines import MAX_FILE
from birchbark.errors import InputError

DELIMITERS = ",;\t|"
SAMPLE = 20  # rows from which the delimiter and the usual width are guessed
LONGEST_NAME = 100  # characters of a column's name, which is repeated in each row
MOST_WORDS = 5  # of the name of a column that is the only one
_DECIMAL = re.compile(r"(?<=[0-9]),(?=[0-9])")
_EXCEL = re.compile(r"sep=(.)")


def read_table(file: File) -> Fields:
    """Return each row as a paragraph: see `row_paragraphs`.

    The delimiter is stated by a first line such as `sep=;`, or is that of DELIMITERS which divides
    the most of the first lines into the same number of cells, more than one. Raises InputError for
    text that cannot be divided into cells.
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
    paragraphs, is_cut = first_blocks(row_paragraphs(rows), MAX_FILE)
    if is_cut:
        file.intake.note(f"table not read after {MAX_FILE:,} characters, with the columns' names")
    return {"title": "", "text": "\n\n".join(paragraphs)}


def first_blocks(blocks: Iterable[str], most: int) -> tuple[list[str], bool]:
    """Return the first blocks, of at most so many characters, and whether there are more."""
    first, size = list[str](), 0
    for block in blocks:
        size += len(block)
        if size > most:
            return first, True
        first.append(block)
    return first, False


def row_paragraphs(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield each row as a paragraph, `name: value; name: value`, without empty cells.

    The names are those of the first row that is as wide as most are, if its cells are distinct, not
    empty but for the first one, no numbers and no texts such as those below them; otherwise only
    the values are given. Narrower rows before it, such as a title, are paragraphs of their own, and
    so are names of columns without values and names too long to be repeated. rows: without empty
    ones.
    """
    widths = [max((place for place, cell in enumerate(row, 1) if cell), default=0) for row in rows]
    _, usual = _most_frequent(widths[:SAMPLE])
    first = next((number for number, width in enumerate(widths) if width >= usual), 0)
    rest = rows[first + 1 :]
    names = [" ".join(name.split()) for name in rows[first]] if rows else []
    if not _are_names(names, rest[:SAMPLE]):
        names, rest = [], rows[first:]
    yield from ("; ".join(" ".join(cell.split()) for cell in row if cell) for row in rows[:first])
    filled = {place for row in rest for place, cell in enumerate(row) if cell.strip()}
    prefixes = [f"{name}: " if 0 < len(name) <= LONGEST_NAME else "" for name in names]
    unused = [n for place, n in enumerate(names) if place not in filled or not prefixes[place]]
    yield from ["; ".join(filter(None, unused))] if any(unused) else []
    for row in rest:
        cells = [" ".join(cell.split()) for cell in row]
        named = zip_longest(prefixes, cells, fillvalue="")
        yield "; ".join(prefix + cell for prefix, cell in named if cell)


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    """Return the cells of each row; quotation marks have no meaning if one is not closed.

    Between tabs, neither have any if they are not balanced in another way: two such marks, as of
    inches, would make one row of all lines between them.
    """
    try:
        return list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        if delimiter == "\t" or "end of data" in str(error):
            return list(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE))
    return list(csv.reader(lines, delimiter=delimiter))


def _delimiter(lines: list[str]) -> str:
    """Return the delimiter that divides the most of the first rows evenly, into the most cells.

    A comma unless another one divides at least half of them, or a semicolon divides all of them
    into the same number of cells and the commas are those of decimal numbers.
    """
    best, most = ",", (0, 1)
    for delimiter in DELIMITERS:
        rows = [row for row in islice(csv.reader(lines, delimiter=delimiter), SAMPLE) if row]
        found = _most_frequent([len(row) for row in rows])
        decimals = delimiter == ";" and found[0] == len(rows) > 0 and _have_decimals(rows)
        if decimals or (found > most and (delimiter == "," or 2 * found[0] >= len(rows))):
            best, most = delimiter, found
    return best


def _have_decimals(rows: list[list[str]]) -> bool:
    """Whether all commas in the cells stand between digits."""
    cells = [cell for row in rows for cell in row]
    return not any("," in _DECIMAL.sub("", cell) for cell in cells)


def _most_frequent(widths: Sequence[int]) -> tuple[int, int]:
    """Return how many rows have the most frequent width above 1, and this width; 0, 1 for none."""
    counts = Counter(width for width in widths if width > 1).most_common(1)
    return (counts[0][1], counts[0][0]) if counts else (0, 1)


def _are_names(names: list[str], below: Sequence[Sequence[str]]) -> bool:
    texts = len(names) == 1 and _is_prose(names[0])
    if texts or any(_is_value(name, place, below) for place, name in enumerate(names)):
        return False
    if len(names) > 2 and not names[0]:  # that of the rows' numbers, as pandas writes them
        names = names[1:]
    return all(names) and len(set(names)) == len(names) and not any(map(_is_number, names))


def _is_value(text: str, place: int, below: Sequence[Sequence[str]]) -> bool:
    """Whether a text is too long for a name, and most of those below it are at least half so."""
    lengths = sorted(len(row[place]) for row in below if len(row) > place and row[place])
    return bool(lengths) and len(text) > LONGEST_NAME < 2 * lengths[(len(lengths) - 1) // 2]


def _is_prose(text: str) -> bool:
    return len(text.split()) > MOST_WORDS or text.endswith((".", "!", "?"))


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").isdecimal()
