"""Which figures describe an index?"""

from __future__ import annotations

from pathlib import Path

from attached_words import SCHEMA, words_of

from birchbark.index.build_index import build_index
from birchbark.index.describe import describe
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from conftest import DOCUMENTS


def test_stats_show_attachments(tmp_path: Path) -> None:
    """The description shows their config, their number of documents, and their size."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        writer.add(Document("new", {"text": "bee"}))
    figures = describe(Index(tmp_path / "i"))
    assert figures["attachment words: made by"] == '{"made of": "words", "times": 1}'
    assert "spans int32 (rows, 2)" in str(figures["attachment words: arrays"])
    assert figures["attachment words: documents"] == 5
    assert figures["attachment words: MB"] == "0.0"
