"""How are the rows of Parquet files read as Documents?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from birchbark.collection.intake import Intake
from birchbark.errors import InputError, MissingPackageError
from birchbark.records import Document

ROWS = 1024  # read at a time


def read_parquet(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each row of a file, or of all `*.parquet` of a folder.

    Columns are fields, see `Document.from_dict`; dates and times become text in ISO format.
    Raises InputError for a damaged file, and for a folder without such files, and
    MissingPackageError without pyarrow.
    """
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError("no file ends in .parquet", where=str(path))
    for file in files:
        for number, row in enumerate(_rows(file), 1):
            location = f"{file}, row {number}"
            try:
                document = Document.from_dict({name: _plain(value) for name, value in row.items()})
            except InputError as error:
                intake.bad(error.at(location))
            else:
                yield location, document


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingPackageError(
            "pyarrow is not installed", remedy="pip install 'birchbark[parquet]'"
        ) from error
    try:
        with ParquetFile(file) as opened:
            for batch in opened.iter_batches(ROWS):
                yield from batch.to_pylist()
    except (ArrowException, UnicodeDecodeError) as error:
        raise InputError(
            f"damaged Parquet: {str(error).splitlines()[0]}",
            where=str(file),
            remedy="the file is incomplete or damaged; download it again",
        ) from None


def _plain(value: Any) -> Any:
    """Return a value of a cell as JSON can express it."""
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
