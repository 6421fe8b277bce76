"""Which texts are in the cells of a workbook? Run as a process of its own, by `spreadsheet.py`.

A damaged or hostile workbook can need any amount of memory, and end the process that reads it. The
workbook is read from stdin; its sheets are written to stdout as JSON.
"""

from __future__ import annotations

import json
import sys
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any


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


def read(raw: bytes, most_cells: int, most_characters: int) -> dict[str, Any]:
    """Return name and rows of each sheet, and whether that exceeds a limit."""
    import python_calamine

    workbook = python_calamine.load_workbook(BytesIO(raw))
    sheets: list[tuple[str, list[list[str]]]] = []
    cells = characters = 0
    for name in workbook.sheet_names:
        rows: list[list[str]] = []
        sheets.append((name, rows))
        for row in workbook.get_sheet_by_name(name).iter_rows():
            texts = [shown(value) for value in row]
            while texts and not texts[-1]:
                texts.pop()
            if texts:
                rows.append(texts)
                cells += sum(map(bool, texts))
                characters += sum(map(len, texts))
            if cells > most_cells or characters > most_characters:
                rows.pop()
                return {"sheets": sheets, "is_cut": True}
    return {"sheets": sheets, "is_cut": False}


def _limit(memory: int) -> None:
    """Limit the memory of this process in bytes, where the system can."""
    try:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = memory if most == resource.RLIM_INFINITY else min(memory, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (ImportError, ValueError, OSError):
        pass


def main() -> None:
    """Read the workbook within the limits of the command line."""
    memory, cells, characters = map(int, sys.argv[1:])
    _limit(memory)
    try:
        found = read(sys.stdin.buffer.read(), cells, characters)
        sys.stdout.write(json.dumps(found))
    except MemoryError:
        sys.exit("out of memory")
    except BaseException as error:  # a panic of the library is no Exception
        sys.exit(f"{error}".replace("\n", " ")[:200] or type(error).__name__)


if __name__ == "__main__":
    main()
