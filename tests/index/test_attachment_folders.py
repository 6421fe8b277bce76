"""Are small folders of rows joined into one?"""

from __future__ import annotations

from pathlib import Path

from attached_words import SCHEMA, assert_rows, attachment, words_in, words_of

from birchbark.index.build_index import build_index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document


def test_many_folders_are_joined(tmp_path: Path) -> None:
    """The many small folders of a part attached in small steps are joined."""
    documents = [Document(f"d{n}", {"text": "bee " * n}) for n in range(25)]
    build_index(documents, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of(), commit_every=2)
    (folders,) = attachment(tmp_path / "i").folders
    assert len(folders) == 1
    for document, rows in zip(
        documents, attachment(tmp_path / "i").rows([d.doc_id for d in documents]), strict=True
    ):
        assert_rows(rows, words_in(document))
