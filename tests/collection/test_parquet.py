"""Are rows of Parquet files documents, and damaged files refused?"""

from __future__ import annotations

import builtins
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from birchbark.collection.documents import collection_format, read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError, MissingPackageError

pyarrow = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
from pyarrow import parquet  # noqa: E402

ROWS = [
    {"_id": "a", "title": "Canoes", "text": "A canoe.", "day": date(2024, 5, 6), "size": 3},
    {"_id": "b", "title": None, "text": "Bees dance.", "day": None, "size": None},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_rows_are_documents(tmp_path: Path) -> None:
    """A row is read as a line of JSON would be; dates are text, and empty cells are no fields."""
    first, second = read_collection(write(tmp_path / "docs.parquet", ROWS))
    assert first.doc_id == "a"
    assert dict(first.fields) == {
        "title": "Canoes",
        "text": "A canoe.",
        "day": "2024-05-06",
        "size": "3",
    }
    assert dict(second.fields) == {"text": "Bees dance."}


def test_all_files_of_a_folder(tmp_path: Path) -> None:
    """They are read in the order of their names, with more rows than are read at a time."""
    many = [
        {"id": n, "text": f"text {n}", "at": datetime(2024, 1, 1, tzinfo=UTC)} for n in range(3000)
    ]
    write(tmp_path / "data" / "b.parquet", many[2000:])
    write(tmp_path / "data" / "a.parquet", many[:2000])
    documents = list(read_collection(tmp_path / "data", format_name="parquet"))
    assert [d.doc_id for d in documents] == [str(n) for n in range(3000)]
    assert documents[0].fields["at"].startswith("2024-01-01T00:00:00")
    assert collection_format(str(tmp_path / "data" / "a.parquet")) == "parquet"
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: no file ends in \.parquet"):
        list(read_collection(tmp_path / "empty", format_name="parquet"))


def test_types_that_json_lacks(tmp_path: Path) -> None:
    """Nanoseconds, decimals, and dates in lists; a folder may be called like a file."""
    table = pyarrow.table(
        {
            "id": ["a"],
            "text": ["x"],
            "at": pyarrow.array([1_700_000_000_123_456_789], pyarrow.timestamp("ns")),
            "price": [Decimal("1.50")],
            "days": [[date(2024, 5, 6)]],
        }
    )
    (tmp_path / "x.parquet").mkdir()
    parquet.write_table(table, tmp_path / "x.parquet" / "part-0.parquet")
    (document,) = read_collection(tmp_path, format_name="parquet")
    assert document.fields["at"] == "2023-11-14T22:13:20.123456"
    assert document.fields["price"] == "1.50"
    assert document.fields["days"] == '["2024-05-06"]'


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_flipped_bytes_are_damage_or_harmless(tmp_path: Path, compression: str) -> None:
    """No other error than that of damaged files."""
    rows = [{"id": str(n), "text": f"text {n} " * 20} for n in range(50)]
    path = tmp_path / "docs.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, compression=compression)
    raw = path.read_bytes()
    random = Random(compression)
    for _ in range(60):
        flipped = bytearray(raw)
        flipped[random.randrange(len(raw))] ^= 1 << random.randrange(8)
        path.write_bytes(flipped)
        with suppress(InputError):
            list(read_collection(path, Intake(skip_bad=True)))


def test_bad_rows(tmp_path: Path) -> None:
    """They are named by file and row, and can be skipped."""
    path = write(tmp_path / "docs.parquet", [*ROWS, {"_id": "c", "size": 1}])
    with pytest.raises(InputError, match=r"docs\.parquet, row 3: document c has no text"):
        list(read_collection(path))
    intake = Intake(skip_bad=True)
    assert len(list(read_collection(path, intake))) == 2
    assert len(intake.skipped) == 1


@pytest.mark.parametrize("raw", [b"", b"PAR1", b"not parquet", None])
def test_damaged_files(tmp_path: Path, raw: bytes | None) -> None:
    """They are empty, of another format, or incomplete."""
    path = write(tmp_path / "docs.parquet", ROWS)
    path.write_bytes(path.read_bytes()[:-20] if raw is None else raw)
    with pytest.raises(InputError, match=r"docs\.parquet: damaged Parquet"):
        list(read_collection(path))


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said what to install."""
    path = write(tmp_path / "docs.parquet", ROWS)
    found = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPackageError, match=r"birchbark\[parquet\]"):
        list(read_collection(path))
