"""Do attached rows stay with their documents through updates, merges, crashes and damage?"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from attached_words import SCHEMA, TWICE, assert_rows, attachment, words_in, words_of
from hypothesis import given
from hypothesis import strategies as st

from birchbark.index.attachment_schema import Rows
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.layout import Manifest
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from conftest import DOCUMENTS, WORDS

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
from tests.index.attached_words import SCHEMA, TWICE, words_of

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


AT_EVERY_FSYNC = """
import os, shutil, signal, sys
from pathlib import Path
from birchbark.index.index import Index
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from dataclasses import replace
from tests.index.attached_words import ARRAYS, SCHEMA, TWICE, words_in

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


@pytest.mark.slow
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
