"""Are pairs tokenised once, stored faithfully, and computed again when anything has changed?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_trainings import prepare, some_pairs

from birchbark.checkpoint.checkpoint import open_any_head
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.collection import data_files
from birchbark.collection.data_files import KnownFiles
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import ArtifactError, InputError
from birchbark.pairs.hash_table import EMPTY, HashTable, hashes_of
from birchbark.pairs.rows_file import Rows, RowsWriter
from birchbark.records import Pair
from birchbark.train import prepared_pairs
from birchbark.train.dataset import load_datasets
from birchbark.train.prepared_pairs import open_pairs, write_pairs
from conftest import write_bert


@pytest.fixture
def tokenizer(tmp_path: Path) -> CheckpointTokenizer:
    return CheckpointTokenizer(open_any_head(write_bert(tmp_path / "bert")))


@pytest.mark.parametrize("width", [1, 2])
def test_a_hash_table_is_a_dict(width: int) -> None:
    """Many thousands of values are found again, whatever the order of adding and growing."""
    rng, table, known = np.random.default_rng(0), HashTable(width), dict[str, int]()
    for _ in range(30):
        names = [f"{n}" for n in rng.integers(0, 9000, 1000)]
        expected = [known.setdefault(name, len(known)) for name in names]
        assert table.numbers(hashes_of(names, width)).tolist() == expected
    assert len(table) == len(known)
    fresh = np.array([7, 8, 9], np.int32)
    before = table.set_new(hashes_of(["0", "new", "new"], width), fresh)
    assert before.tolist() == [known["0"], EMPTY, 8]


@pytest.mark.parametrize("block", [3, 8192])
def test_pairs_are_stored_as_they_are(
    tmp_path: Path, tokenizer: CheckpointTokenizer, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Order, grades and texts are those of the pairs; equal texts are stored once."""
    monkeypatch.setattr(prepared_pairs, "BLOCK", block)
    strange = [Pair("q", "a bark", "ü", "paddle\u2028é 白樺", 3), Pair("r", "bark", "d", "", 0)]
    pairs = [*some_pairs(7), *strange, *some_pairs(3)]
    intake = Intake()
    intake.note("seen")
    write_pairs(pairs, tmp_path / "p", tokenizer, intake)
    stored = open_pairs(tmp_path / "p")
    table = stored.table
    read = [
        (table.queries[q], doc_id, table.texts[t], grade)
        for q, t, doc_id, grade in zip(
            table.query, table.text, table.doc_ids, table.grades, strict=True
        )
    ]
    assert read == [(p.query, p.doc_id, p.text, p.relevance) for p in pairs]
    for texts, ids in ((table.queries, stored.query_ids), (table.texts, stored.text_ids)):
        assert len(set(texts)) == len(texts) == len(ids)
        for one, encoded in zip(ids, tokenizer.encode(list(texts)), strict=True):
            np.testing.assert_array_equal(one, encoded)
    assert (dict(stored.notes), stored.skipped) == ({"seen": 1}, 0)
    chosen = np.arange(len(table.queries)) % 2 == 1
    half = table.of_queries(chosen)
    wanted = [row for row in read if row[0] in set(list(table.queries)[1::2])]
    kept = [(half.queries[q], half.texts[t]) for q, t in zip(half.query, half.text, strict=True)]
    assert kept == [(query, text) for query, _, text, _ in wanted]
    assert list(half.doc_ids) == [doc_id for _, doc_id, _, _ in wanted]
    for query, indices in enumerate(half.by_query):
        assert indices.tolist() == np.flatnonzero(half.query == query).tolist()


def test_token_ids_are_computed_once(tmp_path: Path) -> None:
    """A second training maps them; changed pairs and another tokeniser have their own."""
    training, told = prepare(tmp_path), list[str]()
    tokenizer = CheckpointTokenizer(open_any_head(Path(training.base)))

    def load(tokenizer: CheckpointTokenizer = tokenizer) -> int:
        before = len(told)
        load_datasets(training, tmp_path, tokenizer, told.append, tmp_path / "tokens")
        return sum("tokenising" in line for line in told[before:])

    assert [load(), load()] == [1, 0]
    file = tmp_path / training.data[0].files[0]
    file.write_text(file.read_text() + "\n")
    assert [load(), load()] == [1, 0]
    other = write_bert(tmp_path / "other")
    *words, last, one = (other / "vocab.txt").read_text().splitlines()
    (other / "vocab.txt").write_text("\n".join([*words, one, last]))
    assert load(CheckpointTokenizer(open_any_head(other))) == 1


@pytest.mark.parametrize(
    "name", ["texts", "texts.starts", "text_ids", "query", "grades", "doc_ids", "pairs.json"]
)
def test_truncated_files_are_refused(
    tmp_path: Path, tokenizer: CheckpointTokenizer, name: str
) -> None:
    """The error says which folder to delete."""
    write_pairs(some_pairs(5), tmp_path / "p", tokenizer, Intake())
    file = tmp_path / "p" / name
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(ArtifactError, match="damaged token ids") as error:
        open_pairs(tmp_path / "p")
    assert str(tmp_path / "p") in str(error.value.remedy)


def test_bad_pairs_leave_nothing_behind(tmp_path: Path, tokenizer: CheckpointTokenizer) -> None:
    """An error while reading is raised, and the next attempt begins again."""

    def broken() -> object:
        yield from some_pairs(2)
        raise InputError("bad record")

    with pytest.raises(InputError, match="bad record"):
        write_pairs(broken(), tmp_path / "p", tokenizer, Intake())  # type: ignore[arg-type]
    assert not list(tmp_path.glob("*p*birchbark*")) and not (tmp_path / "p").exists()
    write_pairs(some_pairs(2), tmp_path / "p", tokenizer, Intake())
    write_pairs(some_pairs(1), tmp_path / "p", tokenizer, Intake())  # another process was faster
    assert len(open_pairs(tmp_path / "p").table.queries) == 2


def test_unchanged_files_are_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their size and time tell; a file of another size, or a missing record, is read again."""
    hashed: list[str] = []

    def hash_file(path: Path) -> str:
        hashed.append(path.name)
        return path.read_text()

    monkeypatch.setattr(data_files, "data_fingerprint", hash_file)
    file, record = tmp_path / "pairs.tsv", tmp_path / "tokens" / "files.json"
    file.write_text("one")
    assert [KnownFiles(record).fingerprint(file) for _ in range(3)] == ["one"] * 3
    assert hashed == ["pairs.tsv"]
    file.write_text("three")
    assert KnownFiles(record).fingerprint(file) == "three"
    record.write_text("{")
    assert KnownFiles(record).fingerprint(file) == "three"
    assert len(hashed) == 3
    with pytest.raises(InputError, match="no such file"):
        KnownFiles(record).fingerprint(tmp_path / "gone.tsv")


def test_a_lazy_sequence_is_indexed_like_a_list(tmp_path: Path) -> None:
    """Negative places and slices count from the end; a place beyond it is an IndexError."""
    writer = RowsWriter(tmp_path / "rows", "<u2")
    rows = [np.arange(length, dtype=np.uint16) for length in (3, 0, 2)]
    writer.extend(rows)
    writer.close()
    read = Rows(tmp_path / "rows", "<u2")
    assert [row.tolist() for row in read] == [row.tolist() for row in rows]
    assert (read[-1].tolist(), [len(row) for row in read[-2:]]) == ([0, 1], [0, 2])
    for beyond in (3, -4):
        with pytest.raises(IndexError):
            read[beyond]
