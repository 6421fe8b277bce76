"""Do attached rows stay with their documents through updates, merges, crashes and damage?"""

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
from birchbark.index.attachment_schema import AttachmentSchema, RowFolderEntry, RowForm, Rows
from birchbark.index.attachment_writer import RowWriter
from birchbark.index.build_index import build_index
from birchbark.index.describe import describe
from birchbark.index.index import Index
from birchbark.index.layout import Manifest
from birchbark.index.verify import find_damage
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
    """Return a function that computes the span, length · `times`, bytes and halves of each word."""

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
    opened = (where if isinstance(where, Index) else Index(where)).attachment(name)
    assert opened is not None
    return opened


def assert_rows(actual: Rows | None, expected: Rows) -> None:
    """Assert that arrays and dtypes are equal."""
    assert actual is not None
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        assert actual[name].dtype == values.dtype
        assert actual[name].tolist() == values.tolist()


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
    steps=STEPS,
    part_tokens=st.sampled_from([1, 12, 1000]),
    commit_every=st.sampled_from([1, 3, 100]),
)
def test_any_history_gives_the_rows_of_a_new_attachment(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, str, str]],
    part_tokens: int,
    commit_every: int,
) -> None:
    """Documents added later have none; no document is computed twice for one schema."""
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
            writer.attach("words", schema, compute, commit_every=commit_every)
            assert writer.missing_rows() == {}
            assert covered == now
        elif step == "reopen":
            writer.commit()
            writer.close()
            writer = IndexWriter(where, part_tokens)
    writer.commit()
    lacking = len(now) - len(covered)
    assert writer.missing_rows() == ({"words": lacking} if times and lacking else {})
    writer.close()
    assert find_damage(where) == []
    final = Index(where).attachment("words")
    assert (final is not None) == (times > 0)
    if final:
        for document, rows in zip(now.values(), final.rows(list(now)), strict=True):
            if document.doc_id in covered:
                assert_rows(rows, words_in(document, times))
            else:
                assert rows is None


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


def test_rows_are_views_of_mapped_files(tmp_path: Path) -> None:
    """Rows are not copied, and are read-only."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
    words = attachment(tmp_path / "i")
    (rows,) = words.rows(["bees"])
    assert rows is not None
    for name, values in rows.items():
        assert np.shares_memory(values, words.folders[0][0].values[name])
        assert not values.flags.writeable


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


def test_manifest_with_attachments_round_trips(tmp_path: Path) -> None:
    """A manifest is read as it was written; tuples in a config come back as lists."""
    build_index(DOCUMENTS, tmp_path / "i")
    schema = replace(SCHEMA, config={"windows": (150, 50), "model": None})
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", schema, words_of())
        writer.attach("words", schema, refuse)
        assert writer.attachments["words"].config == {"windows": [150, 50], "model": None}
    manifest = Manifest.read(tmp_path / "i")
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest


def test_attachments_are_independent(tmp_path: Path) -> None:
    """This holds even if the name of one resembles the folder of another."""
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
    """A writer meanwhile updates, merges, attaches under another schema and detaches."""
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


def test_rows_are_flushed_before_the_manifest_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file, its folder and the part's folder, whether rows are computed, joined or merged."""
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
        writer.attach("words", SCHEMA, words_of(), commit_every=1)
        writer.delete("canoe")
        writer.merge()
    assert len(named) == 12 + 1 + 1


CHANGES = """
import sys
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from tests.index.test_attachments import SCHEMA, TWICE, words_of

with IndexWriter(sys.argv[1]) as writer:
    for step in range(25):
        writer.attach("words", TWICE if step % 2 else SCHEMA, words_of(1 + step % 2))
        writer.add(Document(f"d{step}", {"text": "bee " * step}))
        writer.merge()
        if step % 5 == 4:
            writer.detach("words")
"""


def test_an_index_can_be_opened_at_any_time(tmp_path: Path) -> None:
    """Another process meanwhile attaches, merges and detaches, which creates and removes files."""
    build_index(DOCUMENTS, tmp_path / "i")
    command = [sys.executable, "-c", CHANGES, str(tmp_path / "i")]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as child:
        seen = set()
        while child.poll() is None:
            index = Index(tmp_path / "i")
            words = index.attachment("words")
            seen.add((len(index), words.schema.config["times"] if words else 0))
            documents = list(index) if words else []
            rows = words.rows([d.doc_id for d in documents]) if words else []
            for document, values in zip(documents, rows, strict=True):
                if values is not None and words:
                    assert_rows(values, words_in(document, words.schema.config["times"]))
    assert child.returncode == 0
    assert {1, 2} <= {times for _, times in seen}


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


@pytest.mark.parametrize(
    ("name", "schema", "message"),
    [
        ("../up", SCHEMA, "invalid name"),
        ("", SCHEMA, "invalid name"),
        ("words", replace(SCHEMA, arrays={}), "at least one array"),
        ("words", replace(SCHEMA, arrays={"A": RowForm("int8")}), "invalid name"),
        ("words", replace(SCHEMA, arrays={"a": RowForm("object")}), "unsupported row form"),
        ("words", replace(SCHEMA, arrays={"a": RowForm("words")}), "unsupported row form"),
        ("words", replace(SCHEMA, arrays={"a": RowForm(">i4")}), "unsupported row form"),
        ("words", replace(SCHEMA, arrays={"a": RowForm("int8", (0,))}), "unsupported row form"),
        ("words", replace(SCHEMA, config={"a": {1, 2}}), "config is not JSON"),
        ("words", replace(SCHEMA, config={"a": float("nan")}), "config is not JSON"),
    ],
)
def test_invalid_names_and_schemas_are_refused(
    tmp_path: Path, name: str, schema: AttachmentSchema, message: str
) -> None:
    """Nothing is computed before the error."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer, pytest.raises(InputError, match=message):
        writer.attach(name, schema, refuse)


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


def damaged(directory: Path) -> Iterable[Path]:
    """Damage each attached file in turn: change each byte, cut off the last, remove the file."""
    for file in sorted(directory.glob("part-*/attached-*/*")):
        intact = file.read_bytes()
        for at in range(len(intact)):
            file.write_bytes(intact[:at] + bytes([intact[at] ^ 0x41]) + intact[at + 1 :])
            yield file
        file.write_bytes(intact[:-1])
        yield file
        file.unlink()
        yield file
        file.write_bytes(intact)


@pytest.mark.parametrize("covered", ["all", "some"])
def test_damage_never_returns_wrong_rows(tmp_path: Path, covered: str) -> None:
    """With one wrong byte, reading gives the right rows, none, or an error; verify finds it."""
    build_index(DOCUMENTS[:3], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        if covered == "some":
            writer.add(DOCUMENTS[3])
            writer.merge()
    errors = 0
    for file in damaged(tmp_path / "i"):
        (line,) = find_damage(tmp_path / "i")
        assert str(file.parent) in line
        index = Index(tmp_path / "i")  # the rest of the index is usable
        for document in DOCUMENTS[:3]:
            try:
                (rows,) = attachment(index).rows([document.doc_id])
            except ArtifactError as error:
                assert "attached-words" in str(error)
                errors += 1
            else:
                if rows is not None:
                    assert_rows(rows, words_in(document))
    assert errors > 500
    assert find_damage(tmp_path / "i") == []


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


AT_EVERY_FSYNC = """
import os, shutil, signal, sys
from pathlib import Path
from birchbark.index.index import Index
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from dataclasses import replace
from tests.index.test_attachments import ARRAYS, SCHEMA, TWICE, words_in

FEW = {"lengths": ARRAYS["lengths"]}  # fewer files, fewer fsyncs
ONCE, TWICE = replace(SCHEMA, arrays=FEW), replace(TWICE, arrays=FEW)

def lengths(times):
    return lambda documents: [{"lengths": words_in(d, times)["lengths"]} for d in documents]

intact, directory, real = Path(sys.argv[1]), Path(sys.argv[2]), os.fsync

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
        writer.attach("words", ONCE, lengths(1), commit_every=2)
        writer.add(Document("new", {"text": "bee bee"}))
        writer.attach("words", ONCE, lengths(1))
        writer.delete("bees")
        writer.merge()
        writer.attach("words", TWICE, lengths(2), commit_every=2)
        writer.detach("words")
    os._exit(0)

kills, status, seen = 0, 1, set()
while status:
    shutil.copytree(intact, directory)
    child = os.fork()
    if not child:
        change(kills)
    _, status = os.waitpid(child, 0)
    assert find_damage(directory) == []
    index = Index(directory)
    documents = list(index)
    found, covered = index.attachment("words"), 0
    if found:
        times = found.schema.config["times"]
        for document, rows in zip(documents, found.rows([d.doc_id for d in documents])):
            if rows is not None:
                covered += 1
                assert rows["lengths"].tolist() == words_in(document, times)["lengths"].tolist()
        assert covered + index.missing_rows().get("words", 0) == len(documents)
    seen.add((len(documents), found.schema.config["times"] if found else 0, covered))
    IndexWriter(directory).close()
    named = {p.path / e.name for p in index.parts for h in p.entry.attached.values() for e in h}
    assert set(directory.glob("part-*/attached-*")) == named
    shutil.rmtree(directory)
    kills += 1
print(kills, *sorted(seen), sep=chr(10))
"""


def test_each_step_is_atomic_when_killed_in_any_fsync(tmp_path: Path) -> None:
    """Attach, update, merge, attach under another schema, detach: readers see all or nothing."""
    build_index(DOCUMENTS[:4], tmp_path / "intact")
    command = [sys.executable, "-c", AT_EVERY_FSYNC, str(tmp_path / "intact"), str(tmp_path / "i")]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    kills, *seen = done.stdout.splitlines()
    assert int(kills) > 80
    assert seen == [
        "(4, 0, 0)",  # before the first step, and after the last
        "(4, 1, 2)",
        "(4, 1, 4)",
        "(4, 2, 2)",
        "(4, 2, 4)",
        "(5, 1, 4)",
        "(5, 1, 5)",
    ]
