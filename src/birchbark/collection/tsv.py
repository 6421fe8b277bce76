"""How are tab-separated values in MS MARCO's formats read as Documents?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.lines import parse_file
from birchbark.errors import InputError
from birchbark.records import Document

COLUMNS = {2: ("text",), 3: ("title", "text"), 4: ("url", "title", "text")}


def read_tsv(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each line.

    The columns are id, text; or id, title, text; or id, url, title, text. All lines must have the
    same number of columns. Quotes have no special meaning.
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

    return parse_file(path, parse, intake)
