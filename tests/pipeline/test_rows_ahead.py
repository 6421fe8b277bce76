"""Are rows that were computed while documents were read those of the index?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from birchbark.index.attachment_schema import AttachmentSchema, RowForm, Rows
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.stored import rows_ahead
from birchbark.pipeline.stored.precompute import Precomputation
from birchbark.pipeline.stored.rows_ahead import RowsAhead
from birchbark.records import Document

DOCUMENTS = [Document(f"d{n}", {"text": "bark " * n, "more": "birch " * 9}) for n in range(1, 6)]
SCHEMA = AttachmentSchema({"made of": "text"}, {"length": RowForm("int32")})


@pytest.fixture
def computed() -> list[str]:
    """Ids of documents whose rows have been computed."""
    return []


@pytest.fixture
def lengths(computed: list[str]) -> Precomputation:
    """A row for each document: how much of it is read."""

    def compute(documents: Sequence[Document]) -> list[Rows]:
        computed.extend(document.doc_id for document in documents)
        return [{"length": np.array([len(d.text)], np.int32)} for d in documents]

    return Precomputation("lengths", SCHEMA, compute)


def rows_of(index: Path) -> list[int]:
    attachment = Index(index).attachment("lengths")
    assert attachment
    found = attachment.rows([document.doc_id for document in DOCUMENTS])
    return [int(rows["length"][0]) for rows in found if rows]


@pytest.mark.parametrize("most", [0, 1_500, 256_000_000])
def test_rows_are_computed_once(
    most: int,
    lengths: Precomputation,
    computed: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also of documents whose rows were too many to be kept."""
    monkeypatch.setattr(rows_ahead, "MOST_BYTES", most)
    ahead = RowsAhead(lengths, ["text"])
    build_index(ahead.watch(DOCUMENTS), tmp_path / "index")
    assert len(computed) == {0: 0, 1_500: 3}.get(most, 5)
    with IndexWriter(tmp_path / "index") as writer:
        ahead.computation.attach(writer)
    assert sorted(computed) == [d.doc_id for d in DOCUMENTS]
    assert rows_of(tmp_path / "index") == [len(d.text) for d in DOCUMENTS]


def test_rows_depend_on_what_is_read(
    lengths: Precomputation, computed: list[str], tmp_path: Path
) -> None:
    """Fields are read as in the index, and a document that has changed since is computed again."""
    ahead = RowsAhead(lengths, ["text", "more"])
    schema = Schema(read_fields=["text", "more"])
    build_index(ahead.watch(DOCUMENTS), tmp_path / "index", schema)
    changed = Document("d2", {"text": "a canoe", "more": "of birch"})
    with IndexWriter(tmp_path / "index") as writer:
        writer.add(changed)
        ahead.computation.attach(writer)
    assert computed[5:] == ["d2"]
    wanted = {d.doc_id: len(d.text) + 2 + len(d.fields["more"]) for d in [*DOCUMENTS, changed]}
    assert rows_of(tmp_path / "index") == list(wanted.values())
