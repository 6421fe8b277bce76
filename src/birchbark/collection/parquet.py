"""How are the rows of Parquet files read, as Documents, queries or judgments?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import open_decompressed, parse_records
from birchbark.errors import InputError, extra
from birchbark.records import Document

SUFFIX = ".parquet"
ROWS = 1024  # read at a time


def read_parquet(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each row of a file, or of all `*.parquet` of a folder.

    Columns are fields, see `Document.from_dict`; dates and times become text in ISO format.
    Raises what `parquet_rows` raises.
    """
    return parse_records(parquet_rows(path), Document.from_dict, intake)


def is_parquet(path: Path) -> bool:
    """Return whether a path is of a Parquet file, by its name, or of a folder with such files."""
    return path.suffix.lower() == SUFFIX or (path.is_dir() and bool(_files(path)))


def parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield location and columns of each row of a file, or of all `*.parquet` of a folder.

    Raises InputError for a file that is missing or damaged, or has a date that Python lacks, and
    for a folder without such files, and MissingPackageError without pyarrow.
    """
    files = _files(path) if path.is_dir() else [path]
    if not files:
        raise InputError("no file ends in .parquet", where=str(path))
    for file in files:
        for number, row in enumerate(_rows(file), 1):
            yield f"{file}, row {number}", row


def _files(folder: Path) -> list[Path]:
    files = (file for file in folder.rglob("*") if file.suffix.lower() == SUFFIX)
    return sorted(file for file in files if file.is_file())


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with extra("parquet"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    with open_decompressed(file) as stream:
        try:
            for batch in ParquetFile(stream).iter_batches(ROWS):
                yield from map(dict, zip(*map(_cells, batch.schema, batch.columns), strict=True))
        except InputError as error:
            raise error.at(str(file)) from None
        except (ArrowException, OSError, ValueError) as error:
            raise InputError(
                f"damaged Parquet: {str(error).splitlines()[0]}",
                where=str(file),
                remedy="the file is incomplete or damaged; download it again",
            ) from None


def _cells(field: Any, column: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each cell of a column."""
    from pyarrow import types

    kind = _in_microseconds(field.type)
    try:
        cells = (column if kind == field.type else column.cast(kind, safe=False)).to_pylist()
    except (OverflowError, ValueError) as error:  # a date beyond the year 9999
        raise InputError(f"column {field.name} cannot be read: {error}") from None
    if types.is_map(kind):
        cells = [{} if pairs == [] else pairs for pairs in cells]
    return ((field.name, _plain(cell)) for cell in cells)


def _in_microseconds(kind: Any) -> Any:
    """Return a type of cells without nanoseconds, which Python does not have."""
    from pyarrow import list_, time64, timestamp, types

    if types.is_list(kind):
        return list_(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    if types.is_timestamp(kind) and kind.unit == "ns":
        return timestamp("us", kind.tz)
    return time64("us") if types.is_time64(kind) else kind


def _plain(value: Any) -> Any:
    """Return a value of a cell as JSON can express it, of a dict without what other rows have."""
    if isinstance(value, list) and value and all(map(_is_entry, value)):
        value = dict(value)
    if isinstance(value, dict):
        return {_plain(name): _plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def _is_entry(value: Any) -> bool:
    """Whether a value is the pair that an entry of a map is, and its key could be a dict's."""
    return isinstance(value, tuple) and not isinstance(value[0], dict | list)
