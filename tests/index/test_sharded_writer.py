"""Do changes reach the right shards, all of them or none?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from divided_indexes import DOCUMENTS, QUERIES, STAGES, bits, built, words

from birchbark.errors import ArtifactError, InputError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.index.attachment_writer import NewRows
from birchbark.index.index import Index
from birchbark.index.layout import Manifest
from birchbark.index.sharded_writer import ShardedWriter, open_writer
from birchbark.index.shards import shard_folders, shard_number
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Document
from birchbark.retrieve.first_stage import rank_queries
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.sentences import sentences


def test_changes_go_to_the_right_shard(tmp_path: Path) -> None:
    """After additions, replacements, deletions and a merge, it equals an index built afresh."""
    folder = tmp_path / "i"
    built(folder, 3, DOCUMENTS[:40])
    replaced = [Document(d.doc_id, {**d.fields, "text": words(5)}) for d in DOCUMENTS[:10]]
    with open_writer(folder) as writer:
        assert isinstance(writer, ShardedWriter)
        for document in (*DOCUMENTS[40:], *replaced):
            writer.add(document)
        assert writer.delete("d20")
        assert not writer.delete("d20")
        assert "d21" in writer
        assert "d20" not in writer
        assert len(writer) == 59
    before = Index(folder)
    with open_writer(folder) as writer:
        writer.merge()
    assert before.outdated
    left = [*replaced, *(d for d in DOCUMENTS[10:] if d.doc_id != "d20")]
    afresh = built(tmp_path / "afresh", None, left)
    stage = STAGES["fields"]
    wanted = bits(rank_queries(afresh, QUERIES, stage, depth=40))
    for index in (before, Index(folder)):
        assert bits(rank_queries(index, QUERIES, stage, depth=40)) == wanted
    assert sorted(document.doc_id for document in index) == sorted(d.doc_id for d in left)
    for number, shard in enumerate(shard_folders(folder)):
        own = Index(shard)
        assert len(own.parts) == 1
        assert all(shard_number(document.doc_id, 3) == number for document in own)


def test_rows_are_compared_as_they_are_stored(tmp_path: Path) -> None:
    """A tuple is stored as a list; an invalid schema is refused before anything is dropped."""
    built(tmp_path / "i", 2)
    computed: list[int] = []

    def compute(documents: Sequence[Document]) -> list[NewRows]:
        computed.append(len(documents))
        return [{"x": np.zeros(1, np.float32)} for _ in documents]

    schema = AttachmentSchema({"sizes": (1, 2)}, {"x": RowForm("f4")})
    for _ in range(2):
        with open_writer(tmp_path / "i") as writer:
            writer.attach("rows", schema, compute)
    assert sum(computed) == len(DOCUMENTS)
    with open_writer(tmp_path / "i") as writer, pytest.raises(InputError):
        writer.attach("rows", AttachmentSchema({}, {"x": RowForm("complex64")}), compute)
    assert Index(tmp_path / "i").missing_rows() == {}
    assert list(Index(tmp_path / "i").attachments) == ["rows"]


def test_attachments_of_another_kind_are_replaced(
    tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """The index can be opened at any time, also if the replacement fails in the middle."""
    embedding = load_scorer(bert())
    built(tmp_path / "i", 3)
    with open_writer(tmp_path / "i") as writer:
        precompute_vectors(embedding, sentences, "m").attach(writer)
    calls: list[int] = []

    def fail(documents: int) -> None:
        calls.append(len(Index(tmp_path / "i")))
        if len(calls) == 2:
            raise KeyError

    other = precompute_vectors(embedding, sentences, "m", 8)
    with pytest.raises(KeyError), open_writer(tmp_path / "i") as writer:
        other.attach(writer, fail)
    assert calls == [60, 60]
    assert Index(tmp_path / "i").missing_rows() != {}
    with open_writer(tmp_path / "i") as writer:
        other.attach(writer)
    assert Index(tmp_path / "i").missing_rows() == {}


def test_a_shard_takes_only_its_own_documents(tmp_path: Path) -> None:
    """Others would be in the index twice."""
    built(tmp_path / "i", 2)
    strays = [d for d in DOCUMENTS if shard_number(d.doc_id, 2) == 1]
    with IndexWriter(tmp_path / "i" / "shard-00") as writer:
        with pytest.raises(InputError, match="belongs to another shard"):
            writer.add(strays[0])
        own = next(d for d in DOCUMENTS if shard_number(d.doc_id, 2) == 0)
        writer.add(own)
    assert len(Index(tmp_path / "i")) == 60


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    """Uncommitted changes are dropped, and the locks of all shards are released."""
    index = built(tmp_path / "i", 2)

    def add_and_fail() -> None:
        with open_writer(tmp_path / "i") as writer:
            writer.add(Document("new", {"text": "birch"}))
            raise KeyError

    with pytest.raises(KeyError):
        add_and_fail()
    assert not index.outdated
    with open_writer(tmp_path / "i"), pytest.raises(ArtifactError, match="another process"):
        open_writer(tmp_path / "i")
    open_writer(tmp_path / "i").close()


def test_a_commit_is_seen_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of all shards, and of one, see all of it while manifests of shards are replaced."""
    built(tmp_path / "i", 3)
    in_first = sum(shard_number(f"new{n}", 3) == 0 for n in range(20))
    before = len(Index(tmp_path / "i/shard-00"))
    real, seen = IndexWriter.publish, []

    def watched(writer: IndexWriter, manifest: Manifest) -> None:
        seen.append((len(Index(tmp_path / "i")), len(Index(tmp_path / "i/shard-00"))))
        real(writer, manifest)

    monkeypatch.setattr(IndexWriter, "publish", watched)
    with open_writer(tmp_path / "i") as writer:
        for n in range(20):
            writer.add(Document(f"new{n}", {"text": "birch"}))
        assert len(Index(tmp_path / "i")) == 60
    assert seen == [(80, before + in_first)] * 3
    assert not (tmp_path / "i/commit.json").exists()
