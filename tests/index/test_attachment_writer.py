"""Are attached rows checked, and written whole or not at all?"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from attached_words import SCHEMA, assert_rows, attachment, words_in, words_of

from birchbark.errors import InputError
from birchbark.index.attachment_schema import RowFolderEntry, Rows
from birchbark.index.attachment_writer import RowWriter
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.layout import Manifest
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from conftest import DOCUMENTS


def test_a_failed_copy_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk is full while folders are joined or parts merged, and has room again later."""

    def full(writer: RowWriter) -> RowFolderEntry:
        if len(writer._docs) == 2 and len(writer._docs[1]) > 1:
            raise OSError(errno.ENOSPC, "no space left")
        return real(writer)

    real = RowWriter.close
    documents = [Document(f"d{n}", {"text": "bee " * n}) for n in range(12)]
    build_index(documents, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        for step in (
            lambda: writer.attach("words", SCHEMA, words_of(), commit_every=1),
            lambda: (writer.delete("d0"), writer.merge()),
        ):
            with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
                patch.setattr(RowWriter, "close", full)
                step()
            folders = Manifest.read(tmp_path / "i").parts[0].attached["words"]
            assert len(list((tmp_path / "i").glob("part-*/attached-*"))) == len(folders)
            assert find_damage(tmp_path / "i") == []
            step()
    rows_of_documents = attachment(tmp_path / "i").rows([d.doc_id for d in documents[1:]])
    for document, rows in zip(documents[1:], rows_of_documents, strict=True):
        assert_rows(rows, words_in(document))


def test_batches_are_bounded_and_reported(tmp_path: Path) -> None:
    """Documents and characters in a batch are limited, so memory does not depend on the index."""
    documents = [Document(f"d{n:04}", {"text": "bee " * (n % 3)}) for n in range(700)]
    long = [Document(f"l{n}", {"text": "honey " * 500_000}) for n in range(4)]
    build_index([*documents, *long], tmp_path / "i")
    sizes, reported = list[int](), list[int]()

    def compute(documents: Sequence[Document]) -> list[Rows]:
        sizes.append(len(documents))
        return [words_in(Document(d.doc_id, {"text": d.text[:9]})) for d in documents]

    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, compute, reported.append)
    assert sum(sizes) == sum(reported) == 704
    assert max(sizes) <= 256
    assert sizes[-3:] == [1, 1, 1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [],
            r"attachment words: wrong number of results: .*rows for 1 documents, found 0",
        ),
        ([{}], r"document canoe: wrong arrays: expected \['bytes'"),
        (
            [words_in(DOCUMENTS[0]) | {"spans": np.zeros((2, 3), np.int32)}],
            r"canoe: rows of spans .* expected int32 \(rows, 2\), found int32 \(2, 3\)",
        ),
        (
            [words_in(DOCUMENTS[0]) | {"bytes": np.zeros(3)}],
            r"canoe: rows of bytes .* expected uint8 \(rows\), found float64 \(3,\)",
        ),
        (
            [words_in(DOCUMENTS[0]) | {"bytes": np.array(1, np.uint8)}],
            r"canoe: rows of bytes have the wrong form: expected uint8 \(rows\), found uint8 \(\)",
        ),
    ],
)
def test_rows_of_the_wrong_form_are_refused(tmp_path: Path, rows: list[Rows], message: str) -> None:
    """The error names document and array; the index is unchanged."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer, pytest.raises(InputError, match=message):
        writer.attach("words", SCHEMA, lambda documents: rows)
    assert Index(tmp_path / "i").attachments == {}
    assert not list((tmp_path / "i").glob("part-*/attached-*"))
