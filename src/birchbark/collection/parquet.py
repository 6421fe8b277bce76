"""How are the rows of Parquet files read, as Documents, queries or judgments?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import parse_records
from birchbark.errors import InputError, extra
from birchbark.records import Document

ROWS = 1024  # read at a time


def read_parquet(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each row of a file, or of all `*.parquet` of a folder.

    Columns are fields, see `Document.from_dict`; dates and times become text in ISO format.
    Raises what `parquet_rows` raises.
    """
    return parse_records(parquet_rows(path), Document.from_dict, intake)


def is_parquet(path: Path) -> bool:
    """Return whether a path is of a Parquet file, by its name, or of a folder with such files."""
    return path.suffix == ".parquet" or (path.is_dir() and bool(_files(path)))


def parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield location and columns of each row of a file, or of all `*.parquet` of a folder.

    Raises InputError for a damaged file, and for a folder without such files, and
    MissingPackageError without pyarrow.
    """
    files = _files(path) if path.is_dir() else [path]
    if not files:
        raise InputError("no file ends in .parquet", where=str(path))
    for file in files:
        for number, row in enumerate(_rows(file), 1):
            yield f"{file}, row {number}", row


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.parquet") if file.is_file())


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with extra("parquet"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    with file.open("rb") as stream:
        try:
            for batch in ParquetFile(stream).iter_batches(ROWS):
                yield from map(dict, zip(*map(_cells, batch.schema, batch.columns), strict=True))
        except (ArrowException, OSError, ValueError) as error:
            raise InputError(
                f"damaged Parquet: {str(error).splitlines()[0]}",
                where=str(file),
                remedy="the file is incomplete or damaged; download it again",
            ) from None


def _cells(field: Any, column: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each cell of a column."""
    from pyarrow import timestamp, types

    if types.is_timestamp(field.type) and field.type.unit == "ns":  # Python has microseconds
        column = column.cast(timestamp("us", field.type.tz), safe=False)
    return ((field.name, _plain(value)) for value in column.to_pylist())


def _plain(value: Any) -> Any:
    """Return a value of a cell as JSON can express it."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
