"""Are attachments completed, merged and removed as asked, also after a failure?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from attached_words import SCHEMA, TWICE, assert_rows, attachment, refuse, words_in, words_of

from birchbark.errors import ArtifactError, InputError
from birchbark.index.attachment_schema import Rows
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from conftest import DOCUMENTS


def test_a_merged_attachment_has_the_bytes_of_a_new_one(tmp_path: Path) -> None:
    """This holds for any deletions and any number of folders before the merge."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(Document("gone", {"text": "zeppelin"}))
        writer.attach("words", SCHEMA, words_of(), commit_every=1)
        for document in DOCUMENTS[2:]:
            writer.add(document)
        writer.attach("words", SCHEMA, words_of())
        writer.delete("gone")
        writer.merge()
    build_index(DOCUMENTS, tmp_path / "fresh")
    with IndexWriter(tmp_path / "fresh") as writer:
        writer.attach("words", SCHEMA, words_of())
    (ours,) = (tmp_path / "i").glob("part-*/attached-*")
    (theirs,) = (tmp_path / "fresh").glob("part-*/attached-*")
    files = sorted(path.name for path in ours.iterdir())
    assert files == sorted(path.name for path in theirs.iterdir())
    for name in files:
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


def test_detaching_leaves_an_index_as_it_was(tmp_path: Path) -> None:
    """Its manifest is the same but for the generation, and no folder of rows is left."""
    build_index(DOCUMENTS, tmp_path / "i")
    before = json.loads((tmp_path / "i" / "manifest.json").read_text())
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        assert list((tmp_path / "i").glob("part-*/attached-*"))
        writer.detach("words")
    after = json.loads((tmp_path / "i" / "manifest.json").read_text())
    changed = {"generation", "checksum"}
    assert {k: v for k, v in after.items() if k not in changed} == {
        k: v for k, v in before.items() if k not in changed
    }
    assert not list((tmp_path / "i").glob("part-*/attached-*"))


def test_a_failed_computation_keeps_committed_rows(tmp_path: Path) -> None:
    """The next call continues from there; before the first commit, the old rows remain."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        with pytest.raises(AssertionError, match="canoe"):
            writer.attach("words", TWICE, refuse)
        assert attachment(tmp_path / "i").schema == SCHEMA

        def twice(documents: Sequence[Document]) -> list[Rows]:
            return words_of(2)(documents) if documents[0].doc_id != "engine" else [*refuse([])]

        with pytest.raises(AssertionError):
            writer.attach("words", TWICE, twice, commit_every=1)
        assert writer.missing_rows() == {"words": 2}
        computed = []
        compute = lambda d: [computed.append(d[0].doc_id), *words_of(2)(d)][1:]  # noqa: E731
        writer.attach("words", TWICE, compute)
    assert computed == ["engine"]
    assert find_damage(tmp_path / "i") == []


def test_unknown_names_and_documents_are_reported(tmp_path: Path) -> None:
    """Reading an unknown attachment gives None; detaching it raises InputError."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        with pytest.raises(
            InputError, match=r"no attachment 'words'.*the index has no attachments"
        ):
            writer.detach("words")
        writer.attach("words", SCHEMA, words_of())
        with pytest.raises(InputError, match=r"no attachment 'vectors'.*the index has words"):
            writer.detach("vectors")
    assert Index(tmp_path / "i").attachment("vectors") is None
    with pytest.raises(InputError, match="no document nessie"):
        attachment(tmp_path / "i").rows(["canoe", "nessie"])


def test_an_empty_index_has_complete_attachments(tmp_path: Path) -> None:
    """Documents added later have no rows."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("canoe")
        writer.attach("words", SCHEMA, refuse)
        assert writer.missing_rows() == {}
        writer.add(DOCUMENTS[1])
        writer.commit()
        assert writer.missing_rows() == {"words": 1}
    assert attachment(tmp_path / "i").rows(["bees"]) == [None]


def test_damage_is_detected_after_a_merge(tmp_path: Path) -> None:
    """Merging copies damaged rows without reading them; they are still refused afterwards."""
    build_index(DOCUMENTS, tmp_path / "intact")
    with IndexWriter(tmp_path / "intact") as writer:
        writer.attach("words", SCHEMA, words_of())
    errors = 0
    for name in ("docs.npy", "starts.npy", "checks.npy", "rows.bytes"):
        for back in range(1, 16, 2):
            shutil.copytree(tmp_path / "intact", tmp_path / "i")
            (file,) = (tmp_path / "i").glob(f"part-*/attached-*/{name}")
            data = bytearray(file.read_bytes())
            data[-back] ^= 1
            file.write_bytes(data)
            try:
                with IndexWriter(tmp_path / "i") as writer:
                    writer.delete("canoe")
                    writer.merge()
                for document in DOCUMENTS[1:]:
                    (rows,) = attachment(tmp_path / "i").rows([document.doc_id])
                    if rows is not None:
                        assert_rows(rows, words_in(document))
            except ArtifactError:
                errors += 1
            shutil.rmtree(tmp_path / "i")
    assert errors > 20


def test_a_damaged_attachment_can_be_detached(tmp_path: Path) -> None:
    """The error suggests it. Until then, documents can still be added and found."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
    (file,) = (tmp_path / "i").glob("part-*/attached-*/starts.npy")
    file.write_bytes(b"not an array")
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(DOCUMENTS[2])
        with pytest.raises(ArtifactError, match=r"damaged attachment.*detach and attach"):
            writer.merge()
        with pytest.raises(ArtifactError, match="damaged attachment"):
            writer.attach("words", SCHEMA, words_of())
        writer.detach("words")
        writer.merge()
        writer.attach("words", SCHEMA, words_of())
    assert [d.doc_id for d in Index(tmp_path / "i")] == ["canoe", "bees", "bridge"]
    assert find_damage(tmp_path / "i") == []
