"""How is a line of tab-separated values turned into a Document, as MS MARCO writes them?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.lines import parsed_lines
from birchbark.errors import InputError
from birchbark.records import Document

COLUMNS = {2: ("text",), 3: ("title", "text"), 4: ("url", "title", "text")}


def read_tsv(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents of 2 (id, text), 3 (id, title, text) or 4 columns (id, url, title, text).

    Quotes have no meaning. All lines have as many columns as the first.
    """
    wanted = 0

    def parse(line: str) -> Document:
        nonlocal wanted
        doc_id, *values = line.split("\t")
        columns = 1 + len(values)
        if not wanted and columns in COLUMNS:
            wanted = columns
        if columns != wanted:
            raise InputError(
                "wrong number of columns",
                wanted=f"{wanted} as in the lines before" if wanted else "2 to 4, tab-separated",
                found=str(columns),
            )
        return Document(doc_id, dict(zip(COLUMNS[columns], values, strict=True)))

    return parsed_lines(path, parse, intake)
