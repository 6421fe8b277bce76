"""How are tab-separated values in MS MARCO's formats read as Documents?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import binary_lines, parse_lines
from birchbark.errors import InputError
from birchbark.records import DOC_ID_NAMES, TEXT_NAMES, Document

COLUMNS = {2: ("text",), 3: ("title", "text"), 4: ("url", "title", "text")}


def read_tsv(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each line.

    The columns are id, text; or id, title, text; or id, url, title, text. All lines must have the
    same number of columns. A first line that names them is left out. Quotes have no special
    meaning.
    """
    expected = 0

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
        return Document(doc_id, dict(zip(COLUMNS[columns], values, strict=True)))

    numbered = binary_lines(path)
    first = list(islice(numbered, 1))
    if first and _is_header(first[0][1]):
        first = []
    return parse_lines(chain(first, numbered), path, parse, intake)


def _is_header(line: bytes) -> bool:
    """Whether the first line names the columns, such as id TAB text."""
    name, *others = (word.strip() for word in line.decode("ascii", "replace").lower().split("\t"))
    known = {"url", "title", *TEXT_NAMES}
    return name in DOC_ID_NAMES and bool(others) and set(others) <= known
