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
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.collection.documents import collection_format, read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError, MissingPackageError
from birchbark.records import Query

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
    """Nanoseconds, in lists too, decimals, and dates; a folder may be called like a file."""
    table = pyarrow.table(
        {
            "id": ["a"],
            "text": ["x"],
            "at": pyarrow.array([1_700_000_000_123_456_789], pyarrow.timestamp("ns")),
            "price": [Decimal("1.50")],
            "days": [[date(2024, 5, 6)]],
            "seen": pyarrow.array(
                [[1_700_000_000_123_456_789]], pyarrow.list_(pyarrow.timestamp("ns"))
            ),
            "hour": pyarrow.array([12_345_678_901], pyarrow.time64("ns")),
        }
    )
    (tmp_path / "x.parquet").mkdir()
    parquet.write_table(table, tmp_path / "x.parquet" / "part-0.parquet")
    (document,) = read_collection(tmp_path, format_name="parquet")
    assert document.fields["at"] == "2023-11-14T22:13:20.123456"
    assert document.fields["price"] == "1.50"
    assert document.fields["days"] == '["2024-05-06"]'
    assert document.fields["seen"] == '["2023-11-14T22:13:20.123456"]'
    assert document.fields["hour"] == "00:00:12.345678"


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


def test_dates_that_python_lacks(tmp_path: Path) -> None:
    """Those beyond the year 9999 are refused; the column is named."""
    at = pyarrow.array([10**12], pyarrow.timestamp("s"))
    table = pyarrow.table({"id": ["a"], "text": ["x"], "at": at})
    parquet.write_table(table, tmp_path / "docs.parquet")
    with pytest.raises(InputError, match=r"docs\.parquet: column at cannot be read: date value"):
        list(read_collection(tmp_path / "docs.parquet"))


def test_missing_files_and_names_in_capitals(tmp_path: Path) -> None:
    """A file that is not there is told; .PARQUET is Parquet, alone and in a folder."""
    with pytest.raises(InputError, match=r"none\.parquet: no such file"):
        read_qrels(tmp_path / "none.parquet")
    path = write(tmp_path / "queries" / "Q.PARQUET", [{"id": "1", "text": "bees"}])
    assert read_queries(path) == read_queries(path.parent) == [Query("1", "bees")]


def test_weighted_terms_of_queries(tmp_path: Path) -> None:
    """Columns of structs have the terms of all rows; some cells are empty."""
    rows = [
        {"id": "1", "text": "bees", "vector": {"bee": 1.5}},
        {"id": "2", "text": "ants", "vector": {"ant": 0.5}},
        {"id": "3", "text": "birch", "vector": None},
    ]
    path = write(tmp_path / "q.parquet", rows)
    weights = [{"bee": 1.5}, {"ant": 0.5}, None]
    assert [query.weights for query in read_queries(path)] == weights
    kind = pyarrow.map_(pyarrow.string(), pyarrow.float64())
    vectors = pyarrow.array([w and list(w.items()) for w in weights], kind)
    table = pyarrow.table({"id": ["1", "2", "3"], "text": ["a", "b", "c"], "vector": vectors})
    parquet.write_table(table, path)
    assert [query.weights for query in read_queries(path)] == weights


def test_maps_are_objects(tmp_path: Path) -> None:
    """With keys of any type but structs and lists, and also inside lists and structs."""
    of_structs = pyarrow.struct([("x", pyarrow.int64())])
    long_keys = pyarrow.map_(pyarrow.large_string(), pyarrow.float64())
    table = pyarrow.table(
        {
            "id": ["1"],
            "text": ["bees"],
            "vector": pyarrow.array([[("bee", 1.5)]], long_keys),
            "numbered": pyarrow.array(
                [[(1, "one")]], pyarrow.map_(pyarrow.int64(), pyarrow.string())
            ),
            "many": pyarrow.array([[[("a", 0.5)], [("b", 2.0)]]], pyarrow.list_(long_keys)),
            "odd": pyarrow.array([[({"x": 1}, 2)]], pyarrow.map_(of_structs, pyarrow.int64())),
            "none": pyarrow.array([[]], long_keys),
            "inner": pyarrow.array([{"of": [("c", 3.0)]}], pyarrow.struct([("of", long_keys)])),
        }
    )
    parquet.write_table(table, tmp_path / "q.parquet")
    (query,) = read_queries(tmp_path / "q.parquet")
    assert query.weights == {"bee": 1.5}
    (document,) = read_collection(tmp_path / "q.parquet")
    assert document.fields["numbered"] == '{"1": "one"}'
    assert document.fields["many"] == '[{"a": 0.5}, {"b": 2.0}]'
    assert document.fields["odd"] == '[[{"x": 1}, 2]]'
    assert document.fields["none"] == "{}"
    assert document.fields["inner"] == '{"of": {"c": 3.0}}'


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


def nano(folder: Path) -> Path:
    """A test collection in the layout of NanoBEIR."""
    rows = {
        "corpus": [{"_id": r["_id"], "text": r["text"]} for r in ROWS],
        "queries": [{"_id": "q1", "text": "light boats"}, {"_id": "q2", "text": "dance"}],
        "qrels": [
            {"query-id": "q1", "corpus-id": "a"},
            {"query-id": "q2", "corpus-id": "b"},
            {"query-id": "q2", "corpus-id": "a"},
        ],
    }
    for name, of_name in rows.items():
        write(folder / name / "train-00000-of-00001.parquet", of_name)
    return folder


def test_queries_and_judgments_of_nanobeir(tmp_path: Path) -> None:
    """They are folders of Parquet files, and judgments have no grades."""
    folder = nano(tmp_path)
    queries = read_queries(folder / "queries")
    assert [(q.query_id, q.text) for q in queries] == [("q1", "light boats"), ("q2", "dance")]
    assert read_qrels(folder / "qrels").grades == {"q1": {"a": 1}, "q2": {"b": 1, "a": 1}}


def test_the_commands_take_nanobeir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Index, retrieve and evaluate."""
    nano(tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in (
        "index corpus --format parquet --to ix --vectors none",
        "retrieve ix --queries queries --output bm25.run",
        "evaluate qrels bm25.run -m RR",
    ):
        done = CliRunner().invoke(group, command.split())
        assert done.exit_code == 0, done.output
    assert "bm25" in done.output
    assert ".5" in done.output  # q1 has no word of a document


def test_grades_and_fields_of_rows(tmp_path: Path) -> None:
    """Grades are read if there are any; other columns can form the text of a query."""
    rows = [{"query_id": 1, "doc_id": "a", "score": 2}, {"query_id": 1, "doc_id": "b", "score": 0}]
    assert read_qrels(write(tmp_path / "q.parquet", rows)).grades == {"1": {"a": 2, "b": 0}}
    path = write(tmp_path / "t.parquet", [{"id": "1", "title": "t", "description": "d"}])
    assert [q.text for q in read_queries(path, ("title", "description"))] == ["t d"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query-id": "1", "score": 1}, "row 1: no id: expected a field named doc_id or"),
        ({"qid": "1", "docno": "a", "score": 1.5}, "row 1: grade is not an integer"),
    ],
)
def test_bad_judgments(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_qrels(write(tmp_path / "q.parquet", [row]))


def test_bad_queries(tmp_path: Path) -> None:
    """The row is named."""
    path = write(tmp_path / "q.parquet", [{"id": "1", "text": "x"}, {"id": "2", "text": None}])
    with pytest.raises(InputError, match="row 2: query 2 has no text"):
        read_queries(path)
