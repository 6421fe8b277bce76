"""Do rows that are attached in small steps stay right while the index changes in between?"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from attached_words import SCHEMA, TWICE, assert_rows, attachment, words_in, words_of
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.errors import ArtifactError, InputError
from birchbark.index import attachment_writer
from birchbark.index import writer as writer_module
from birchbark.index.attachment_schema import Rows
from birchbark.index.attachment_slices import Slice, next_slice
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.layout import Manifest
from birchbark.index.merge import MERGE_FACTOR
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from conftest import DOCUMENTS, WORDS


def take(where: Path, documents: int = 2, characters: int = 100) -> Slice | None:
    return next_slice(Index(where), "words", documents, characters)


def store(where: Path, computed: Slice, rows: Sequence[Rows] | None = None) -> None:
    with IndexWriter(where) as writer:
        rows = words_of()(computed.documents) if rows is None else rows
        writer.attach_slice("words", SCHEMA, computed, rows)


IDS = st.sampled_from("abcdefgh")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
STEPS = st.lists(
    st.tuples(st.just("add"), IDS, TEXTS)
    | st.tuples(st.just("delete"), IDS, st.just(""))
    | st.tuples(st.sampled_from(["take", "store", "store", "merge"]), st.just(""), st.just("")),
    max_size=15,
)


@settings(max_examples=30)
@given(steps=STEPS, documents=st.integers(1, 4), characters=st.sampled_from([1, 30, 1000]))
def test_any_changes_between_computing_and_storing_leave_right_rows(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, str, str]],
    documents: int,
    characters: int,
) -> None:
    """Documents may be replaced, deleted and merged while a slice is computed."""
    where = tmp_path_factory.mktemp("history") / "i"
    build_index(DOCUMENTS[:1], where)
    now = {DOCUMENTS[0].doc_id: DOCUMENTS[0]}
    taken: list[Slice] = []
    for step, doc_id, text in steps:
        if step == "take":
            if one := take(where, documents, characters):
                taken.append(one)
        elif step == "store":
            if taken:
                store(where, taken.pop(0))
        else:
            with IndexWriter(where) as writer:
                if step == "add":
                    now[doc_id] = Document(doc_id, {"text": text})
                    writer.add(now[doc_id])
                elif step == "delete":
                    writer.delete(doc_id)
                    now.pop(doc_id, None)
                else:
                    writer.merge()
    while one := take(where, documents, characters):
        assert 1 <= len(one.documents) <= documents
        store(where, one)
    index = Index(where)
    assert not index.missing_rows()
    assert not find_damage(where)
    if now:
        for doc_id, rows in zip(now, attachment(index).rows([*now]), strict=True):
            assert_rows(rows, words_in(now[doc_id]))


def test_rows_of_an_index_that_was_replaced_are_not_stored(tmp_path: Path) -> None:
    """The new index has a part of the same name, with other documents of the same ids."""
    build_index(DOCUMENTS, tmp_path / "i")
    taken = take(tmp_path / "i", 10)
    assert taken
    changed = [replace(document, fields={"text": "bee"}) for document in DOCUMENTS]
    build_index(changed, tmp_path / "i", replace=True)
    assert Index(tmp_path / "i").parts[0].name == taken.part[0]
    store(tmp_path / "i", taken)
    assert "words" not in Index(tmp_path / "i").attachments


def test_rows_under_another_schema_are_neither_replaced_nor_mixed(tmp_path: Path) -> None:
    """Storing raises InputError, also for rows of the wrong form, and changes nothing."""
    build_index(DOCUMENTS, tmp_path / "i")
    taken = take(tmp_path / "i")
    assert taken
    with pytest.raises(InputError, match="wrong arrays"):
        store(tmp_path / "i", taken, [{} for _ in taken.documents])
    with pytest.raises(InputError, match="wrong number of results"):
        store(tmp_path / "i", taken, [])
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", TWICE, words_of(2))
    before = Manifest.read(tmp_path / "i")
    with pytest.raises(InputError, match="another schema"):
        store(tmp_path / "i", taken)
    assert Manifest.read(tmp_path / "i") == before
    assert not find_damage(tmp_path / "i")


@pytest.mark.parametrize("attach_after", [3, 35])
def test_folders_stay_few_however_small_the_steps(tmp_path: Path, attach_after: int) -> None:
    """There are fewer than ten of each order of magnitude; `attach` joins them all."""
    documents = [Document(f"d{n:03}", {"text": "bee " * (1 + n % 3)}) for n in range(60)]
    build_index(documents, tmp_path / "i")
    for _ in range(attach_after):
        if one := take(tmp_path / "i", 1):
            store(tmp_path / "i", one)
    (entry,) = Manifest.read(tmp_path / "i").parts
    assert sum(rows.documents for rows in entry.attached["words"]) == attach_after
    sizes = [len(str(max(rows.rows))) for rows in entry.attached["words"]]
    assert all(sizes.count(size) < MERGE_FACTOR for size in sizes)
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of(), commit_every=4)
    assert len(attachment(tmp_path / "i").folders[0]) < MERGE_FACTOR
    for document, rows in zip(
        documents, attachment(tmp_path / "i").rows([d.doc_id for d in documents]), strict=True
    ):
        assert_rows(rows, words_in(document))


def test_a_long_document_is_a_slice_of_its_own_size(tmp_path: Path) -> None:
    """A slice ends with the document that completes its characters, so it has at most one more."""
    long = Document("long", {"text": "honey " * 1000})
    build_index([DOCUMENTS[0], long, *DOCUMENTS[1:]], tmp_path / "i")
    sizes = []
    while one := take(tmp_path / "i", 10, 500):
        sizes.append([document.doc_id for document in one.documents])
        store(tmp_path / "i", one)
    assert sizes == [["canoe", "long"], ["bees", "bridge", "engine", "forest"]]


def test_long_computations_are_committed_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If enough time has passed, a batch of documents is committed before the next is computed."""
    build_index(DOCUMENTS, tmp_path / "i")
    monkeypatch.setattr(attachment_writer, "COMMIT_SECONDS", -1.0)
    monkeypatch.setattr(attachment_writer, "BATCH_DOCUMENTS", 2)

    def fail_at_the_end(documents: Sequence[Document]) -> list[Rows]:
        if documents[-1] == DOCUMENTS[-1]:
            raise InterruptedError
        return words_of()(documents)

    with IndexWriter(tmp_path / "i") as writer:
        with pytest.raises(InterruptedError):
            writer.attach("words", SCHEMA, fail_at_the_end)
        assert writer.missing_rows() == {"words": 1}


def test_a_writer_waits_for_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for some time only; then it raises ArtifactError."""
    build_index(DOCUMENTS, tmp_path / "i")
    first = IndexWriter(tmp_path / "i")
    with monkeypatch.context() as patch:
        patch.setattr(writer_module, "LOCK_SECONDS", 0.0)
        with pytest.raises(ArtifactError, match="another process is writing to this index"):
            IndexWriter(tmp_path / "i")
    monkeypatch.setattr(writer_module, "LOCK_SECONDS", 30.0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(IndexWriter, tmp_path / "i")
        first.add(Document("new", {"text": "bee"}))
        first.commit()
        first.close()
        with waiting.result() as second:
            assert "new" in second
