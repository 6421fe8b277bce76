"""How are tab-separated values in MS MARCO's formats read as Documents?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import binary_lines, parse_lines
from birchbark.errors import InputError
from birchbark.records import DOC_ID_NAMES, TEXT_NAMES, Document

FIELDS = {"url", "title", "text"}
COLUMNS = {2: ("text",), 3: ("title", "text"), 4: ("url", "title", "text")}


def read_tsv(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each line.

    The columns are id, text; or id, title, text; or id, url, title, text; or those that the first
    line names, of which the first is the id. All lines must have the same number of columns. Quotes
    have no special meaning.
    """
    numbered = binary_lines(path)
    first = list(islice(numbered, 1))
    named = _named_columns(first[0][1]) if first else ()
    expected = len(named) + 1 if named else 0

    def parse(line: str) -> Document:
        nonlocal expected
        doc_id, *values = line.split("\t")
        columns = 1 + len(values)
        if not expected and columns in COLUMNS:
            expected = columns
        if columns != expected:
            raise InputError(
                "wrong number of columns",
                wanted=f"{expected}, as in the previous lines"
                if expected
                else "2 to 4, tab-separated",
                found=str(columns),
            )
        return Document(doc_id, dict(zip(named or COLUMNS[columns], values, strict=True)))

    return parse_lines(numbered if named else chain(first, numbered), path, parse, intake)


def _named_columns(line: bytes) -> tuple[str, ...]:
    """Return the fields of the columns after the id that a first line names, such as id TAB text.

    Empty if it names none.
    """
    name, *others = (word.strip() for word in line.decode("ascii", "replace").lower().split("\t"))
    fields = ["text" if other in TEXT_NAMES else other for other in others]
    if name not in DOC_ID_NAMES or not fields or not set(fields) <= FIELDS:
        return ()
    distinct = len(set(fields)) == len(fields)
    return tuple(fields) if distinct else COLUMNS.get(len(fields) + 1, ())
