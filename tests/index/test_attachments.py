"""Do attached rows stay with their documents, whatever happens to the index and its files?"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import ArtifactError, InputError
from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import AttachedEntry, AttachmentSchema, RowForm, Rows
from birchbark.index.attachment_writer import RowWriter
from birchbark.index.build import build_index
from birchbark.index.describe import describe
from birchbark.index.layout import Manifest
from birchbark.index.reader import Index
from birchbark.index.verify import damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from conftest import DOCUMENTS, WORDS

ARRAYS = {
    "spans": RowForm("int32", (2,)),
    "lengths": RowForm("int32"),
    "bytes": RowForm("uint8"),
    "halves": RowForm("float16", (3,)),
}
SCHEMA = AttachmentSchema({"made of": "words", "times": 1}, ARRAYS)
TWICE = replace(SCHEMA, config={"made of": "words", "times": 2})


def words_of(times: int = 1) -> Callable[[Sequence[Document]], list[Rows]]:
    """A function to attach: of each word its place, length times `times`, bytes, and halves."""

    def compute(documents: Sequence[Document]) -> list[Rows]:
        return [words_in(document, times) for document in documents]

    return compute


def words_in(document: Document, times: int = 1) -> Rows:
    words = document.text.split()
    ends = np.cumsum([len(word) + 1 for word in words]).astype(np.int32)
    lengths = np.array(list(map(len, words)), np.int32)
    return {
        "bytes": np.frombuffer("".join(words).encode(), np.uint8),
        "halves": np.repeat(lengths[:, None] / 2, 3, axis=1).astype(np.float16),
        "lengths": lengths * np.int32(times),
        "spans": np.stack([ends - 1 - lengths, ends - 1], axis=1),
    }


def attachment(where: Path | Index, name: str = "words") -> Attachment:
    found = (where if isinstance(where, Index) else Index(where)).attachment(name)
    assert found is not None
    return found


def assert_rows(found: Rows | None, wanted: Rows) -> None:
    """The same arrays, types included."""
    assert found is not None
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert found[name].dtype == values.dtype
        assert found[name].tolist() == values.tolist()


def refuse(documents: Sequence[Document]) -> Iterable[Rows]:
    raise AssertionError(f"asked for {[d.doc_id for d in documents]}")


IDS = st.sampled_from("abcdefgh")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
OTHERS = ["commit", "merge", "reopen", "attach", "attach", "attach twice", "detach"]
STEPS = st.lists(
    st.tuples(st.just("add"), IDS, TEXTS)
    | st.tuples(st.just("delete"), IDS, st.just(""))
    | st.tuples(st.sampled_from(OTHERS), st.just(""), st.just("")),
    max_size=30,
)


@given(
    steps=STEPS, part_tokens=st.sampled_from([1, 12, 1000]), keep_every=st.sampled_from([1, 3, 100])
)
def test_any_history_gives_the_rows_attached_afresh(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, str, str]],
    part_tokens: int,
    keep_every: int,
) -> None:
    """Or none, for documents that came since; and no document is computed twice for one schema."""
    where = tmp_path_factory.mktemp("history") / "i"
    build_index(DOCUMENTS[:1], where)
    now = {DOCUMENTS[0].doc_id: DOCUMENTS[0]}
    covered: dict[str, Document] = {}
    times = 0

    def compute(documents: Sequence[Document]) -> list[Rows]:
        for document in documents:
            assert covered.get(document.doc_id) != document
            covered[document.doc_id] = document
        return words_of(times)(documents)

    writer = IndexWriter(where, part_tokens)
    for step, doc_id, text in steps:
        if step == "add":
            now[doc_id] = Document(doc_id, {"text": text})
            covered.pop(doc_id, None)
            writer.add(now[doc_id])
        elif step == "delete":
            writer.delete(doc_id)
            now.pop(doc_id, None)
            covered.pop(doc_id, None)
        elif step == "commit":
            writer.commit()
        elif step == "merge":
            writer.merge()
        elif step == "detach" and times:
            writer.detach("words")
            covered, times = {}, 0
        elif step.startswith("attach"):
            wanted = 2 if "twice" in step else 1
            if wanted != times:
                covered, times = {}, wanted
            schema = TWICE if times == 2 else SCHEMA
            writer.attach("words", schema, compute, keep_every=keep_every)
            assert writer.incomplete() == {}
            assert covered == now
        elif step == "reopen":
            writer.commit()
            writer.close()
            writer = IndexWriter(where, part_tokens)
    writer.commit()
    lacking = len(now) - len(covered)
    assert writer.incomplete() == ({"words": lacking} if times and lacking else {})
    writer.close()
    assert damage(where) == []
    found = Index(where).attachment("words")
    assert (found is not None) == (times > 0)
    if found:
        for document, rows in zip(now.values(), found.rows(list(now)), strict=True):
            if document.doc_id in covered:
                assert_rows(rows, words_in(document, times))
            else:
                assert rows is None


def test_a_merged_attachment_has_the_bytes_of_one_made_afresh(tmp_path: Path) -> None:
    """Whatever was deleted, and in however many folders it lay."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(Document("gone", {"text": "zeppelin"}))
        writer.attach("words", SCHEMA, words_of(), keep_every=1)
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


def test_many_folders_become_one(tmp_path: Path) -> None:
    """So that a part that was attached in small steps is read in one."""
    documents = [Document(f"d{n}", {"text": "bee " * n}) for n in range(25)]
    build_index(documents, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of(), keep_every=2)
    (held,) = attachment(tmp_path / "i").held
    assert len(held) == 1
    for document, rows in zip(
        documents, attachment(tmp_path / "i").rows([d.doc_id for d in documents]), strict=True
    ):
        assert_rows(rows, words_in(document))


def test_rows_are_views_of_mapped_files(tmp_path: Path) -> None:
    """Nothing is copied, and nothing can be changed by accident."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
    found = attachment(tmp_path / "i")
    (rows,) = found.rows(["bees"])
    assert rows is not None
    for name, values in rows.items():
        assert np.shares_memory(values, found.held[0][0].values[name])
        assert not values.flags.writeable


def test_an_index_without_attachments_is_written_as_before(tmp_path: Path) -> None:
    """Version 2, and no key that an older reader would not know; also after detaching."""
    build_index(DOCUMENTS, tmp_path / "i")
    before = json.loads((tmp_path / "i" / "manifest.json").read_text())
    assert before["version"] == 2
    assert "attachments" not in before
    assert "attached" not in before["parts"][0]
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        assert json.loads((tmp_path / "i" / "manifest.json").read_text())["version"] == 3
        assert list((tmp_path / "i").glob("part-*/attached-*"))
        writer.detach("words")
    after = json.loads((tmp_path / "i" / "manifest.json").read_text())
    changed = {"generation", "checksum"}
    assert {k: v for k, v in after.items() if k not in changed} == {
        k: v for k, v in before.items() if k not in changed
    }
    assert not list((tmp_path / "i").glob("part-*/attached-*"))


def test_manifest_with_attachments_round_trips(tmp_path: Path) -> None:
    """What is written is read; a config comes back as JSON has it."""
    build_index(DOCUMENTS, tmp_path / "i")
    schema = replace(SCHEMA, config={"windows": (150, 50), "model": None})
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", schema, words_of())
        writer.attach("words", schema, refuse)
        assert writer.attachments["words"].config == {"windows": [150, 50], "model": None}
    manifest = Manifest.read(tmp_path / "i")
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest


def test_several_attachments_do_not_touch_each_other(tmp_path: Path) -> None:
    """Also where one name goes on like another's folder."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        writer.attach("words-000003", TWICE, words_of(2))
        writer.delete("canoe")
        writer.merge()
        writer.detach("words")
    assert Index(tmp_path / "i").attachment("words") is None
    (rows,) = attachment(tmp_path / "i", "words-000003").rows(["bees"])
    assert_rows(rows, words_in(DOCUMENTS[1], 2))


def test_readers_keep_their_snapshot(tmp_path: Path) -> None:
    """While a writer updates, merges, attaches otherwise and detaches."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        old = Index(tmp_path / "i")
        writer.add(Document("bees", {"text": "no dance"}))
        writer.delete("canoe")
        writer.merge()
        middle = Index(tmp_path / "i")
        assert attachment(middle).rows(["bees"]) == [None]
        writer.attach("words", TWICE, words_of(2))
        writer.detach("words")
    for document, rows in zip(
        DOCUMENTS, attachment(old).rows([d.doc_id for d in DOCUMENTS]), strict=True
    ):
        assert_rows(rows, words_in(document))
    assert_rows(attachment(middle).rows(["forest"])[0], words_in(DOCUMENTS[4]))
    assert Index(tmp_path / "i").attachment("words") is None


def test_rows_are_flushed_before_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file, its folder, and the part's: computed, joined or merged."""
    build_index(DOCUMENTS, tmp_path / "i")
    flushed: set[Path] = set()
    real_fsync, real_write, named = os.fsync, Manifest.write, set[Path]()

    def fsync(handle: int) -> None:
        flushed.add(Path(f"/proc/self/fd/{handle}").readlink())
        real_fsync(handle)

    def write(manifest: Manifest, directory: Path) -> None:
        for entry in manifest.parts:
            for rows in entry.attached.get("words", ()):
                folder = directory / entry.name / rows.name
                assert {*folder.iterdir(), folder, folder.parent, directory} <= flushed
                named.add(folder)
        real_write(manifest, directory)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Manifest, "write", write)
    with IndexWriter(tmp_path / "i") as writer:
        for n in range(7):
            writer.add(Document(f"d{n}", {"text": "bee"}))
        writer.merge()
        writer.attach("words", SCHEMA, words_of(), keep_every=1)
        writer.delete("canoe")
        writer.merge()
    assert len(named) == 12 + 1 + 1


CHANGES = """
import sys
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from index.test_attachments import SCHEMA, TWICE, words_of

with IndexWriter(sys.argv[1]) as writer:
    for step in range(25):
        writer.attach("words", TWICE if step % 2 else SCHEMA, words_of(1 + step % 2))
        writer.add(Document(f"d{step}", {"text": "bee " * step}))
        writer.merge()
        if step % 5 == 4:
            writer.detach("words")
"""


def test_an_index_can_be_opened_at_any_moment(tmp_path: Path) -> None:
    """While another process attaches, merges and detaches, so that files come and go."""
    build_index(DOCUMENTS, tmp_path / "i")
    command = [sys.executable, "-c", CHANGES, str(tmp_path / "i")]
    with subprocess.Popen(command, cwd=Path(__file__).parents[1]) as child:
        seen = set()
        while child.poll() is None:
            index = Index(tmp_path / "i")
            found = index.attachment("words")
            seen.add((len(index), found.schema.config["times"] if found else 0))
            documents = list(index) if found else []
            rows = found.rows([d.doc_id for d in documents]) if found else []
            for document, held in zip(documents, rows, strict=True):
                if held is not None and found:
                    assert_rows(held, words_in(document, found.schema.config["times"]))
    assert child.returncode == 0
    assert {1, 2} <= {times for _, times in seen}


def test_computing_that_fails_keeps_what_was_committed(tmp_path: Path) -> None:
    """The next call goes on from there; before the first commit the old rows stay."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        with pytest.raises(AssertionError, match="canoe"):
            writer.attach("words", TWICE, refuse)
        assert attachment(tmp_path / "i").schema == SCHEMA

        def twice(documents: Sequence[Document]) -> list[Rows]:
            return words_of(2)(documents) if documents[0].doc_id != "engine" else [*refuse([])]

        with pytest.raises(AssertionError):
            writer.attach("words", TWICE, twice, keep_every=1)
        assert writer.incomplete() == {"words": 2}
        asked = []
        writer.attach("words", TWICE, lambda d: [asked.append(d[0].doc_id), *words_of(2)(d)][1:])
    assert asked == ["engine"]
    assert damage(tmp_path / "i") == []


def test_copying_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that was full when folders were joined or parts merged, and then is not."""

    def full(writer: RowWriter) -> AttachedEntry:
        if len(writer._docs) == 2 and len(writer._docs[1]) > 1:
            raise OSError(errno.ENOSPC, "no space left")
        return real(writer)

    real = RowWriter.close
    documents = [Document(f"d{n}", {"text": "bee " * n}) for n in range(12)]
    build_index(documents, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        for step in (
            lambda: writer.attach("words", SCHEMA, words_of(), keep_every=1),
            lambda: (writer.delete("d0"), writer.merge()),
        ):
            with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
                patch.setattr(RowWriter, "close", full)
                step()
            held = Manifest.read(tmp_path / "i").parts[0].attached["words"]
            assert len(list((tmp_path / "i").glob("part-*/attached-*"))) == len(held)
            assert damage(tmp_path / "i") == []
            step()
    found = attachment(tmp_path / "i").rows([d.doc_id for d in documents[1:]])
    for document, rows in zip(documents[1:], found, strict=True):
        assert_rows(rows, words_in(document))


def test_batches_are_bounded_and_counted(tmp_path: Path) -> None:
    """By documents and by their characters, so that memory does not depend on the index."""
    documents = [Document(f"d{n:04}", {"text": "bee " * (n % 3)}) for n in range(700)]
    long = [Document(f"l{n}", {"text": "honey " * 500_000}) for n in range(4)]
    build_index([*documents, *long], tmp_path / "i")
    sizes, told = list[int](), list[int]()

    def compute(documents: Sequence[Document]) -> list[Rows]:
        sizes.append(len(documents))
        return [words_in(Document(d.doc_id, {"text": d.text[:9]})) for d in documents]

    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, compute, told.append)
    assert sum(sizes) == sum(told) == 704
    assert max(sizes) <= 256
    assert sizes[-1] == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [],
            r"attachment words: cannot attach: .* each of 1 documents, found for 0",
        ),
        ([{}], r"document canoe: other arrays: expected \['bytes'"),
        (
            [words_in(DOCUMENTS[0]) | {"spans": np.zeros((2, 3), np.int32)}],
            r"canoe: rows of spans: expected int32 \(rows, 2\), found int32 \(2, 3\)",
        ),
        (
            [words_in(DOCUMENTS[0]) | {"bytes": np.zeros(3)}],
            r"canoe: rows of bytes: expected uint8 \(rows\), found float64 \(3,\)",
        ),
        (
            [words_in(DOCUMENTS[0]) | {"bytes": np.array(1, np.uint8)}],
            r"canoe: rows of bytes: expected uint8 \(rows\), found uint8 \(\)",
        ),
    ],
)
def test_rows_of_another_form_are_refused(tmp_path: Path, rows: list[Rows], message: str) -> None:
    """The document and the array are named, and the index stays as it was."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer, pytest.raises(InputError, match=message):
        writer.attach("words", SCHEMA, lambda documents: rows)
    assert Index(tmp_path / "i").attachments == {}
    assert not list((tmp_path / "i").glob("part-*/attached-*"))


@pytest.mark.parametrize(
    ("name", "schema", "message"),
    [
        ("../up", SCHEMA, "cannot be a name"),
        ("", SCHEMA, "cannot be a name"),
        ("words", replace(SCHEMA, arrays={}), "without arrays"),
        ("words", replace(SCHEMA, arrays={"A": RowForm("int8")}), "cannot be a name"),
        ("words", replace(SCHEMA, arrays={"a": RowForm("object")}), "not a form of rows"),
        ("words", replace(SCHEMA, arrays={"a": RowForm("words")}), "not a form of rows"),
        ("words", replace(SCHEMA, arrays={"a": RowForm(">i4")}), "not a form of rows"),
        ("words", replace(SCHEMA, arrays={"a": RowForm("int8", (0,))}), "not a form of rows"),
        ("words", replace(SCHEMA, config={"a": {1, 2}}), "config is not JSON"),
        ("words", replace(SCHEMA, config={"a": float("nan")}), "config is not JSON"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    tmp_path: Path, name: str, schema: AttachmentSchema, message: str
) -> None:
    """Before anything is computed."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer, pytest.raises(InputError, match=message):
        writer.attach(name, schema, refuse)


def test_unknown_names_and_documents_are_told(tmp_path: Path) -> None:
    """A name that is not there is None to a reader, and an error to who would drop it."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        with pytest.raises(InputError, match=r"no attachment 'words'.*it has none"):
            writer.detach("words")
        writer.attach("words", SCHEMA, words_of())
        with pytest.raises(InputError, match=r"no attachment 'vectors'.*there is words"):
            writer.detach("vectors")
    assert Index(tmp_path / "i").attachment("vectors") is None
    with pytest.raises(InputError, match="no document nessie"):
        attachment(tmp_path / "i").rows(["canoe", "nessie"])


def test_an_empty_index_has_complete_attachments(tmp_path: Path) -> None:
    """Documents that come later are what it lacks."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("canoe")
        writer.attach("words", SCHEMA, refuse)
        assert writer.incomplete() == {}
        writer.add(DOCUMENTS[1])
        writer.commit()
        assert writer.incomplete() == {"words": 1}
    assert attachment(tmp_path / "i").rows(["bees"]) == [None]


def test_stats_show_attachments(tmp_path: Path) -> None:
    """What made them, how many documents they cover, and how large they are."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        writer.add(Document("new", {"text": "bee"}))
    found = describe(Index(tmp_path / "i"))
    assert found["attachment words: made by"] == '{"made of": "words", "times": 1}'
    assert "spans int32 (rows, 2)" in str(found["attachment words: arrays"])
    assert found["attachment words: documents"] == 5
    assert found["attachment words: MB"] == "0.0"


def damaged(directory: Path) -> Iterable[Path]:
    """The index with one changed byte in each attached file in turn, at every place."""
    for file in sorted(directory.glob("part-*/attached-*/*")):
        whole = file.read_bytes()
        for at in range(len(whole)):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
            yield file
        file.write_bytes(whole[:-1])
        yield file
        file.unlink()
        yield file
        file.write_bytes(whole)


@pytest.mark.parametrize("covered", ["all", "some"])
def test_damage_never_gives_other_rows(tmp_path: Path, covered: str) -> None:
    """One wrong byte anywhere: the right rows, none, or an error; verify always finds it."""
    build_index(DOCUMENTS[:3], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        if covered == "some":
            writer.add(DOCUMENTS[3])
            writer.merge()
    told = 0
    for file in damaged(tmp_path / "i"):
        (line,) = damage(tmp_path / "i")
        assert str(file.parent) in line
        index = Index(tmp_path / "i")  # what is not damaged can be used
        for document in DOCUMENTS[:3]:
            try:
                (rows,) = attachment(index).rows([document.doc_id])
            except ArtifactError as error:
                assert "attached-words" in str(error)
                told += 1
            else:
                if rows is not None:
                    assert_rows(rows, words_in(document))
    assert told > 500
    assert damage(tmp_path / "i") == []


def test_damage_outlives_a_merge(tmp_path: Path) -> None:
    """Copying rows does not make them right, so they are refused afterwards too."""
    build_index(DOCUMENTS, tmp_path / "whole")
    with IndexWriter(tmp_path / "whole") as writer:
        writer.attach("words", SCHEMA, words_of())
    told = 0
    for name in ("docs.npy", "starts.npy", "checks.npy", "rows.bytes"):
        for back in range(1, 16, 2):
            shutil.copytree(tmp_path / "whole", tmp_path / "i")
            (file,) = (tmp_path / "i").glob(f"part-*/attached-*/{name}")
            held = bytearray(file.read_bytes())
            held[-back] ^= 1
            file.write_bytes(held)
            try:
                with IndexWriter(tmp_path / "i") as writer:
                    writer.delete("canoe")
                    writer.merge()
                for document in DOCUMENTS[1:]:
                    (rows,) = attachment(tmp_path / "i").rows([document.doc_id])
                    if rows is not None:
                        assert_rows(rows, words_in(document))
            except ArtifactError:
                told += 1
            shutil.rmtree(tmp_path / "i")
    assert told > 20


def test_a_damaged_attachment_can_be_dropped(tmp_path: Path) -> None:
    """As the error says; nor does it keep documents from being added and found."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
    (file,) = (tmp_path / "i").glob("part-*/attached-*/starts.npy")
    file.write_bytes(b"not an array")
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(DOCUMENTS[2])
        with pytest.raises(ArtifactError, match=r"damaged attachment.*detach it"):
            writer.merge()
        with pytest.raises(ArtifactError, match="damaged attachment"):
            writer.attach("words", SCHEMA, words_of())
        writer.detach("words")
        writer.merge()
        writer.attach("words", SCHEMA, words_of())
    assert [d.doc_id for d in Index(tmp_path / "i")] == ["canoe", "bees", "bridge"]
    assert damage(tmp_path / "i") == []


AT_EVERY_FSYNC = """
import os, shutil, signal, sys
from pathlib import Path
from birchbark.index.reader import Index
from birchbark.index.verify import damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from dataclasses import replace
from index.test_attachments import ARRAYS, SCHEMA, TWICE, words_in

FEW = {"lengths": ARRAYS["lengths"]}  # fewer files, fewer moments
ONCE, TWICE = replace(SCHEMA, arrays=FEW), replace(TWICE, arrays=FEW)

def lengths(times):
    return lambda documents: [{"lengths": words_in(d, times)["lengths"]} for d in documents]

whole, directory, real = Path(sys.argv[1]), Path(sys.argv[2]), os.fsync

def change(kill_at):
    left = kill_at
    def fsync(handle):
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        real(handle)
    os.fsync = fsync
    with IndexWriter(directory) as writer:
        writer.attach("words", ONCE, lengths(1), keep_every=2)
        writer.add(Document("new", {"text": "bee bee"}))
        writer.attach("words", ONCE, lengths(1))
        writer.delete("bees")
        writer.merge()
        writer.attach("words", TWICE, lengths(2), keep_every=2)
        writer.detach("words")
    os._exit(0)

kills, status, seen = 0, 1, set()
while status:
    shutil.copytree(whole, directory)
    child = os.fork()
    if not child:
        change(kills)
    _, status = os.waitpid(child, 0)
    assert damage(directory) == []
    index = Index(directory)
    documents = list(index)
    found, covered = index.attachment("words"), 0
    if found:
        times = found.schema.config["times"]
        for document, rows in zip(documents, found.rows([d.doc_id for d in documents])):
            if rows is not None:
                covered += 1
                assert rows["lengths"].tolist() == words_in(document, times)["lengths"].tolist()
        assert covered + index.incomplete().get("words", 0) == len(documents)
    seen.add((len(documents), found.schema.config["times"] if found else 0, covered))
    IndexWriter(directory).close()
    named = {p.path / e.name for p in index.parts for h in p.entry.attached.values() for e in h}
    assert set(directory.glob("part-*/attached-*")) == named
    shutil.rmtree(directory)
    kills += 1
print(kills, *sorted(seen), sep=chr(10))
"""


def test_a_kill_inside_each_fsync_is_all_or_nothing(tmp_path: Path) -> None:
    """Attach, update, merge, attach otherwise, detach: each step is seen whole or not at all."""
    build_index(DOCUMENTS[:4], tmp_path / "whole")
    command = [sys.executable, "-c", AT_EVERY_FSYNC, str(tmp_path / "whole"), str(tmp_path / "i")]
    tests = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tests)
    assert done.returncode == 0, done.stderr
    kills, *seen = done.stdout.splitlines()
    assert int(kills) > 80
    assert seen == [
        "(4, 0, 0)",  # nothing, and after all
        "(4, 1, 2)",
        "(4, 1, 4)",
        "(4, 2, 2)",
        "(4, 2, 4)",
        "(5, 1, 4)",
        "(5, 1, 5)",
    ]
