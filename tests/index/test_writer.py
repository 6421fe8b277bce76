"""Does an updated index answer like a new one, and survive crashes and full disks?"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from attached_words import SCHEMA, words_of
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.layout import Manifest, PartEntry
from birchbark.index.merge import merge_parts
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.rm3 import RM3
from conftest import DOCUMENTS, WORDS

IDS = st.sampled_from("abcdefgh")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
STEPS = st.lists(
    st.tuples(st.just("add"), IDS, TEXTS)
    | st.tuples(st.just("delete"), IDS, st.just(""))
    | st.tuples(st.sampled_from(["commit", "merge", "reopen"]), st.just(""), st.just("")),
    max_size=25,
)
QUERIES = ["birch bark canoe", "river bee honey dance", "iron", "stone arch steam engine tree"]


def assert_equal(updated: Index, rebuilt: Index) -> None:
    """Assert equal documents, statistics and rankings, to the last bit."""
    documents = sorted(rebuilt, key=lambda d: d.doc_id)
    assert sorted(updated, key=lambda d: d.doc_id) == documents
    assert updated.totals("contents") == rebuilt.totals("contents")
    assert updated.documents([d.doc_id for d in documents]) == documents
    for query in QUERIES:
        for stage in (FirstStage(), FirstStage(expansion=RM3(max_df_share=1, documents=3))):
            assert rank_query(updated, query, stage) == rank_query(rebuilt, query, stage)


@given(steps=STEPS, part_tokens=st.sampled_from([1, 12, 1000]))
def test_any_history_gives_the_same_index_as_building_it(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]], part_tokens: int
) -> None:
    """A history adds, updates, deletes, commits, merges and reopens in any order."""
    where = tmp_path_factory.mktemp("history")
    build_index(DOCUMENTS[:1], where / "i")
    texts = {DOCUMENTS[0].doc_id: dict(DOCUMENTS[0].fields)}
    writer = IndexWriter(where / "i", part_tokens)
    for step, doc_id, text in steps:
        if step == "add":
            writer.add(Document(doc_id, {"text": text}))
            texts[doc_id] = {"text": text}
        elif step == "delete":
            assert writer.delete(doc_id) == (texts.pop(doc_id, None) is not None)
        elif step == "commit":
            writer.commit()
        elif step == "merge":
            writer.merge()
            assert len(Index(where / "i").parts) <= 1
        else:
            writer.commit()
            writer.close()
            writer = IndexWriter(where / "i", part_tokens)
        assert len(writer) == len(texts)
        assert all(doc_id in writer for doc_id in texts)
    writer.commit()
    writer.close()
    assert find_damage(where / "i") == []
    if texts:
        documents = [Document(doc_id, fields) for doc_id, fields in texts.items()]
        assert_equal(Index(where / "i"), build_index(documents, where / "fresh"))
    else:
        assert len(Index(where / "i")) == 0
        assert len(rank_query(Index(where / "i"), "birch")) == 0


def test_many_commits_leave_few_parts(tmp_path: Path) -> None:
    """Ten adjacent parts of similar size are merged into one; answers do not change."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    documents = [Document(f"d{n:03}", {"text": f"{WORDS[n % 20]} bee"}) for n in range(120)]
    with IndexWriter(tmp_path / "i") as writer:
        for document in documents:
            writer.add(document)
            writer.commit()
    index = Index(tmp_path / "i")
    assert len(index.parts) < 30
    assert_equal(index, build_index([DOCUMENTS[0], *documents], tmp_path / "fresh"))


MANY = [Document(f"d{n:02}", {"text": f"{WORDS[n]} bee"}) for n in range(12)]
IDS_OF_MANY = [document.doc_id for document in MANY]
NOT_MERGED = "all changes are committed, but parts were not merged"


def ids_in(directory: Path) -> list[str]:
    return [document.doc_id for document in Index(directory)]


def part_folders(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("part-*"))


@pytest.mark.parametrize("step", ["merge_parts", "Manifest.write"])
def test_a_commit_succeeds_without_room_to_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Merging needs the most space. The same writer can go on, and merges when there is room."""
    build_index(MANY[:9], tmp_path / "i", part_tokens=1)
    real_merge, real_write = merge_parts, Manifest.write

    def merge_on_full_disk(parts: Any, target: Path, forward: bool) -> PartEntry:
        real_merge(parts, target, forward)
        raise OSError(errno.ENOSPC, "No space left on device")

    def write_on_full_disk(manifest: Manifest, directory: Path) -> None:
        if len(manifest.parts) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        real_write(manifest, directory)

    fault = merge_on_full_disk if step == "merge_parts" else write_on_full_disk
    writer = IndexWriter(tmp_path / "i", part_tokens=1)
    with monkeypatch.context() as full:
        full.setattr(f"birchbark.index.writer.{step}", fault)
        for document in MANY[9:]:
            writer.add(document)
        writer.delete("d00")
        with pytest.warns(UserWarning, match=f"{NOT_MERGED}.*No space left on device"):
            writer.commit()
        assert ids_in(tmp_path / "i") == IDS_OF_MANY[1:]
        assert len(Index(tmp_path / "i").parts) == 11
        left_over = len(part_folders(tmp_path / "i")) - 11
        assert left_over == (0 if step == "merge_parts" else 1)
        with pytest.raises(OSError, match="No space left on device"):
            writer.merge()
    writer.add(MANY[0])
    writer.commit()
    writer.close()
    assert ids_in(tmp_path / "i") == [*IDS_OF_MANY[1:], "d00"]
    assert part_folders(tmp_path / "i") == [part.name for part in Index(tmp_path / "i").parts]
    assert len(Index(tmp_path / "i").parts) == 1
    assert find_damage(tmp_path / "i") == []


@pytest.mark.parametrize(
    ("file", "at", "what"),
    [
        ("texts.blocks", -1, "block 0 is damaged"),
        ("terms.bytes", 0, "can't decode byte"),
        ("doc_ids.bytes", 0, "can't decode byte"),
    ],
)
def test_a_commit_succeeds_beside_a_damaged_part(
    tmp_path: Path, file: str, at: int, what: str
) -> None:
    """Such a part cannot be merged. It is named as before, and other documents get their rows."""
    build_index(MANY[:9], tmp_path / "i", part_tokens=1)
    damaged = tmp_path / "i" / Index(tmp_path / "i").parts[3].name
    content = bytearray((damaged / file).read_bytes())
    content[at] ^= 0xFF
    with (
        pytest.warns(UserWarning, match=f"{NOT_MERGED}.*{what}"),
        IndexWriter(tmp_path / "i", part_tokens=1) as writer,
    ):
        writer.attach("words", SCHEMA, words_of())
        (damaged / file).write_bytes(content)
        for document in MANY[9:]:
            writer.add(document)
        writer.delete("d00")
        writer.commit()
        writer.attach("words", SCHEMA, words_of())
    index = Index(tmp_path / "i")
    assert (len(index), index.find("d00"), index.find("d11")) == (11, None, (10, 0))
    assert index.missing_rows() == {}
    assert part_folders(tmp_path / "i") == [part.name for part in index.parts]
    (line,) = find_damage(tmp_path / "i")
    assert line.startswith(f"{damaged}: ")
    if file == "texts.blocks":
        with pytest.raises(ArtifactError, match=what):
            index.documents(["d03"])
    with pytest.raises(ArtifactError, match=what), IndexWriter(tmp_path / "i") as writer:
        writer.merge()


def test_nothing_is_visible_before_the_commit(tmp_path: Path) -> None:
    """A block that raises changes nothing."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    with pytest.raises(RuntimeError), IndexWriter(tmp_path / "i") as writer:
        writer.add(DOCUMENTS[2])
        writer.delete("canoe")
        assert [d.doc_id for d in Index(tmp_path / "i")] == ["canoe", "bees"]
        raise RuntimeError
    assert [d.doc_id for d in Index(tmp_path / "i")] == ["canoe", "bees"]
    IndexWriter(tmp_path / "i").close()
    assert len(list((tmp_path / "i").glob("part-*"))) == 1


def test_readers_keep_their_snapshot(tmp_path: Path) -> None:
    """A writer meanwhile updates, deletes, merges and removes their files."""
    old = build_index(DOCUMENTS, tmp_path / "i")
    before = rank_query(old, "birch river")
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("canoe")
        writer.add(Document("forest", {"text": "no trees"}))
        writer.merge()
    assert rank_query(old, "birch river") == before
    assert old.documents(["forest", "canoe"]) == [DOCUMENTS[4], DOCUMENTS[0]]
    assert "canoe" not in rank_query(Index(tmp_path / "i"), "birch river").doc_ids


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """A second writer is refused until the first is closed."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i"), pytest.raises(ArtifactError, match="another process"):
        IndexWriter(tmp_path / "i")
    IndexWriter(tmp_path / "i").close()


def test_a_closed_writer_changes_nothing(tmp_path: Path) -> None:
    """It no longer holds the lock and could overwrite another writer's commit."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(DOCUMENTS[2])
    for change in (writer.commit, writer.merge, lambda: writer.delete("canoe")):
        with pytest.raises(ArtifactError, match="writer is closed"):
            change()
    with pytest.raises(ArtifactError, match="writer is closed"):
        writer.add(DOCUMENTS[3])
    assert len(Index(tmp_path / "i")) == 3


def test_an_index_is_not_replaced_while_it_is_written(tmp_path: Path) -> None:
    """A writer detects that another program has replaced the index."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    with IndexWriter(tmp_path / "i"), pytest.raises(ArtifactError, match="another process"):
        build_index(DOCUMENTS[2:], tmp_path / "i", replace=True)
    writer = IndexWriter(tmp_path / "i")
    writer.delete("canoe")
    build_index(DOCUMENTS[2:], tmp_path / "new")
    shutil.rmtree(tmp_path / "i")
    (tmp_path / "new").rename(tmp_path / "i")
    with pytest.raises(ArtifactError, match="replaced or removed"):
        writer.commit()
    writer.close()
    assert [d.doc_id for d in Index(tmp_path / "i")] == [d.doc_id for d in DOCUMENTS[2:]]


def test_a_merge_leaves_an_index_that_was_built_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merging takes long, and ended by writing the old parts over the new ones."""
    build_index(DOCUMENTS[:2], tmp_path / "i", part_tokens=1)

    def replaced(*arguments: Any) -> PartEntry:
        entry = merge_parts(*arguments)
        shutil.rmtree(tmp_path / "i")
        build_index(DOCUMENTS[2:], tmp_path / "i")
        return entry

    monkeypatch.setattr("birchbark.index.writer.merge_parts", replaced)
    writer = IndexWriter(tmp_path / "i")
    with pytest.raises(ArtifactError, match="replaced or removed"):
        writer.merge()
    writer.close()
    assert [d.doc_id for d in Index(tmp_path / "i")] == [d.doc_id for d in DOCUMENTS[2:]]


def test_a_commit_is_complete_where_the_index_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be too many open files. To commit again does not add the documents again."""
    build_index(DOCUMENTS[:2], tmp_path / "i")

    def refused(directory: Path) -> Index:
        raise OSError(errno.EMFILE, "Too many open files")

    with IndexWriter(tmp_path / "i") as writer:
        writer.add(DOCUMENTS[2])
        with monkeypatch.context() as full:
            full.setattr("birchbark.index.writer.Index", refused)
            writer.commit()
            with pytest.raises(OSError, match="Too many"):
                writer.delete(DOCUMENTS[2].doc_id)
        writer.commit()
        writer.add(DOCUMENTS[2])
    assert len(Index(tmp_path / "i")) == 3


def test_files_are_flushed_before_the_manifest_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New files, their folders and lists of deletions reach the disk before the manifest."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    flushed: set[Path] = set()
    real_fsync, real_write = os.fsync, Manifest.write

    def fsync(handle: int) -> None:
        flushed.add(Path(f"/proc/self/fd/{handle}").readlink())
        real_fsync(handle)

    def write(manifest: Manifest, directory: Path) -> None:
        for entry in manifest.parts:
            if entry.name not in before or entry.deleted:
                part = directory / entry.name
                files = [part / entry.deleted] if entry.name in before else list(part.iterdir())
                assert {*files, part, directory} <= flushed
        checked.append(manifest)
        real_write(manifest, directory)

    before = {part.name for part in Manifest.read(tmp_path / "i").parts}
    checked: list[Manifest] = []
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Manifest, "write", write)
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(DOCUMENTS[2])
        writer.delete("canoe")
    assert len(checked) == 1


def test_writing_requires_an_index(tmp_path: Path) -> None:
    """In a folder without an index, no lock file is created."""
    with pytest.raises(InputError, match="no index here"):
        IndexWriter(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_leftovers_do_not_block_a_writer(tmp_path: Path) -> None:
    """Files, folders and links are removed, but not what a link leads to."""
    build_index(DOCUMENTS, tmp_path / "i")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    (part,) = (tmp_path / "i").glob("part-*")
    leftovers = [
        tmp_path / "i" / name
        for name in ("part-9", "part-99-0", ".birchbark-tmp-a", ".birchbark-tmp-b")
    ]
    leftovers += [part / "deleted-9.npy", part / "attached-vectors-9", part / "attached-x-9"]
    leftovers += [part / "graph-attached-vectors-9"]
    for path in leftovers[::2]:
        path.symlink_to(kept)
    leftovers[1].mkdir()
    (leftovers[1] / "texts").write_text("y")
    leftovers[3].mkdir()
    leftovers[5].write_text("z")
    leftovers[7].mkdir()
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(Document("new", {"text": "new"}))
    assert not any(os.path.lexists(path) for path in leftovers)
    assert (kept / "file").exists()
    assert find_damage(tmp_path / "i") == []


def test_only_the_last_update_of_a_document_is_found(tmp_path: Path) -> None:
    """This holds for several updates in one commit."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        for text in ("one", "two", "three"):
            writer.add(Document("bees", {"text": text}))
        assert writer.delete("canoe")
        assert not writer.delete("canoe")
        assert len(writer) == 4
    (document,) = Index(tmp_path / "i").documents(["bees"])
    assert document.text == "three"
    with pytest.raises(InputError, match="no document canoe"):
        Index(tmp_path / "i").documents(["canoe"])


CHILD = """
import random, sys
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
seed, directory = int(sys.argv[1]), sys.argv[2]
chance = random.Random(seed)
with IndexWriter(directory, part_tokens=200) as writer:
    print("ready", flush=True)
    for step in range(10_000):
        for _ in range(chance.randint(1, 8)):
            doc_id = f"d{chance.randint(0, 40)}"
            if chance.random() < 0.3:
                writer.delete(doc_id)
                print("-", doc_id, flush=True)
            else:
                text = f"seed{seed} step{step} " + "bee " * chance.randint(0, 50)
                writer.add(Document(doc_id, {"text": text}))
                print("+", doc_id, text.strip(), flush=True)
        writer.merge() if chance.random() < 0.2 else writer.commit()
        print("acknowledged", flush=True)
"""


def replay(lines: list[str], state: dict[str, str]) -> list[dict[str, str]]:
    """Return the states after each acknowledged commit, and after one that may be incomplete."""
    states = [dict(state)]
    now = dict(state)
    for line in lines:
        sign, _, rest = line.partition(" ")
        if sign == "acknowledged":
            states.append(dict(now))
        elif sign == "-":
            now.pop(rest, None)
        elif sign == "+":
            doc_id, _, text = rest.partition(" ")
            now[doc_id] = text
    return [*states, dict(now)]


@pytest.mark.slow
def test_kills_lose_no_acknowledged_commit(tmp_path: Path) -> None:
    """After kill -9 at a random time of add, delete, commit or merge, each commit is atomic."""
    directory = tmp_path / "i"
    build_index(DOCUMENTS[:1], directory)
    with IndexWriter(directory) as writer:
        writer.delete("canoe")
    state: dict[str, str] = {}
    chance, commits = random.Random(7), 0
    for seed in range(40):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(seed), str(directory)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        output = "".join(child.stdout.readline() for _ in range(chance.randrange(40)))
        time.sleep(chance.uniform(0, 0.1))
        os.kill(child.pid, signal.SIGKILL)
        lines = (output + child.stdout.read()).split("\n")[:-1]
        child.wait()
        child.stdout.close()
        assert find_damage(directory) == []
        current = {d.doc_id: d.text.strip() for d in Index(directory)}
        states = replay(lines, state)
        commits += len(states) - 2
        assert current in states[-2:], seed
        state = current
    assert commits > 40
    assert len(list(directory.glob("part-*"))) >= len(Manifest.read(directory).parts)
    IndexWriter(directory).close()
    assert len(list(directory.glob("part-*"))) == len(Manifest.read(directory).parts)


AT_EVERY_FSYNC = """
import json, os, signal, sys
from birchbark.index.index import Index
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document

directory, real = sys.argv[1], os.fsync

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
        writer.add(Document("new", {"text": f"bee {kill_at}"}))
        writer.delete("canoe")
        writer.commit()
        print("acknowledged", kill_at, flush=True)
        writer.add(Document("canoe", {"text": "here again"}))
        writer.merge()
    os._exit(0)

kill_at, status, acknowledged = 0, 1, 0
while status:
    child = os.fork()
    if not child:
        change(kill_at)
    _, status = os.waitpid(child, 0)
    assert find_damage(directory) == []
    print(json.dumps(sorted(f"{d.doc_id}: {d.text}" for d in Index(directory))), flush=True)
    kill_at += 1
"""


@pytest.mark.slow
def test_commits_are_atomic_when_killed_in_any_fsync(tmp_path: Path) -> None:
    """The process is killed each time a commit or merge waits for the disk, in turn."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    command = [sys.executable, "-c", AT_EVERY_FSYNC, str(tmp_path / "i")]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    bees = f"bees: {DOCUMENTS[1].text}"
    new, acknowledged, kills = -1, False, 0
    for line in lines:
        if line.startswith("acknowledged"):
            new, acknowledged = int(line.split()[1]), True
            continue
        texts = json.loads(line)
        kills += 1
        rest = [text for text in texts if not text.startswith("canoe")]
        if acknowledged:
            assert rest == [bees, f"new: bee {new}"]
        else:
            assert rest in (
                [bees],
                [bees, f"new: bee {kills - 1}"],
                [bees, f"new: bee {kills - 2}"],
            )
        assert [text for text in texts if text not in rest] in (
            [],
            [f"canoe: {DOCUMENTS[0].text}"],
            ["canoe: here again"],
        )
        acknowledged = False
    assert kills > 30
    assert json.loads(lines[-1]) == [bees, "canoe: here again", f"new: bee {new}"]


ON_A_FULL_DISK = """
import errno, sys
from pathlib import Path
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.records import Document

disk = Path(sys.argv[1])
build_index([Document("a", {"text": "old"}), Document("b", {"text": "bee"})], disk / "i")
chunk, failures = b"x" * 4096, 0
for room in range(60):
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(chunk)
        except OSError as full:
            assert full.errno == errno.ENOSPC
        filler.truncate(max(0, filler.tell() // 4096 - room) * 4096)
    try:
        with IndexWriter(disk / "i") as writer:
            words = " ".join(f"w{n}" for n in range(6000))
            writer.add(Document("c", {"text": words}))
            writer.delete("a")
    except OSError as full:
        assert full.errno == errno.ENOSPC, full
        failures += 1
        assert [d.doc_id for d in Index(disk / "i")] == ["a", "b"], room
        assert find_damage(disk / "i") == []
    else:
        break
assert [d.doc_id for d in Index(disk / "i")] == ["b", "c"]
assert find_damage(disk / "i") == []
print(failures)
"""


def test_a_full_disk_keeps_the_last_commit(tmp_path: Path) -> None:
    """On a real disk of 1 MB, filled to the page, readers see the old state until there is room."""
    inside = f'mount -t tmpfs -o size=1m none {tmp_path} && exec "$@"'
    alone = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    probe = [*alone, inside, "sh", "true"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("unshare and mount are not allowed here")
    command = [*alone, inside, "sh", sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 8


@pytest.mark.parametrize(
    "bad", [Document("", {"text": "x"}), Document("\ud800", {}), Document("a", {"text": "\udfff"})]
)
def test_invalid_documents_are_refused(tmp_path: Path, bad: Document) -> None:
    """The writer refuses them like the readers of files do; existing documents remain."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        with pytest.raises(InputError, match=r"empty id|lone surrogate"):
            writer.add(bad)
        writer.add(DOCUMENTS[1])
    assert [d.doc_id for d in Index(tmp_path / "i")] == ["canoe", "bees"]
