"""Does a service follow the changes of its folder while it is searched?"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from threading import Semaphore

import pytest
from fastapi.testclient import TestClient

from birchbark.collection.files import folder as folder_module
from birchbark.collection.files import folder_state
from birchbark.collection.files.folder_state import FolderSource
from birchbark.errors import ArtifactError, InputError, UnreadableError
from birchbark.index.index import Index
from birchbark.index.verify import find_damage
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.upkeep import folder_index
from birchbark.pipeline.upkeep.folder_index import (
    build_folder_index,
    empty_folder_index,
    folder_has_changed,
)
from birchbark.serve import background_sync, background_thread
from birchbark.serve.app import application
from birchbark.serve.background_sync import BackgroundSync
from birchbark.serve.limits import Limits
from birchbark.serve.service import Service
from conftest import WordScorer

PATIENCE = 30.0  # seconds
WORDS = "birch bark river canoe bridge engine bees iron water forest".split()
Client = tuple[TestClient, list[str]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits."""
    monkeypatch.setattr(background_sync, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(background_sync, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(background_thread, "MAX_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(folder_state, "SETTLED_NS", 50_000_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "always.txt").write_text("A birch by the river.")
    return tmp_path / "files"


@pytest.fixture
def served(folder: Path, tmp_path: Path) -> Iterator[Client]:
    """A client of a service of the folder, and the service's messages."""
    index, messages = tmp_path / "index", list[str]()
    build_folder_index(FolderSource((str(folder),)), index)
    searcher, sync = (
        Searcher(index, Ranker(WordScorer())),
        BackgroundSync(index, [folder], messages.append),
    )
    service = Service(searcher, None, Limits(budget=20), writable=True, sync=sync)
    with TestClient(application(service)) as client:
        yield client, messages


def contents(index: Path) -> dict[str, dict[str, str]]:
    return {document.doc_id: dict(document.fields) for document in Index(index)}


def settle(index: Path, folder: Path) -> None:
    """Return when the service has seen the last change."""
    end = time.monotonic() + PATIENCE
    while folder_has_changed(index, [folder]):
        assert time.monotonic() < end, "changes are not seen"
        time.sleep(0.02)


def change(folder: Path, chance: random.Random) -> None:
    """Add, change, rename, delete, move away or half write a random file."""
    name = folder / f"{chance.choice('abcde')}/{chance.randrange(8)}.txt"
    text = " ".join(chance.choices(WORDS, k=20))
    name.parent.mkdir(exist_ok=True)
    kind = chance.choice(["write", "write", "half", "rename", "delete", "folder", "damage"])
    if kind == "write":
        name.write_text(text)
    elif kind == "half":
        with name.open("w") as out:
            out.write(text[:30])
            out.flush()
            time.sleep(0.02)
            out.write(text[30:])
    elif kind == "rename" and name.exists():
        name.rename(name.with_name(f"{chance.randrange(8)}.txt"))
    elif kind == "delete":
        name.unlink(missing_ok=True)
    elif kind == "folder" and not (folder / "moved").exists():
        name.parent.rename(folder / "moved")
    elif kind == "damage":
        name.write_bytes(b"\0\xff\1" + os.urandom(10))


@pytest.fixture
def empty(folder: Path, tmp_path: Path) -> Service:
    """A service that has not started, of a folder of which no file has been read."""
    index = tmp_path / "index"
    empty_folder_index(FolderSource((str(folder),)), index)
    searcher = Searcher(index, Ranker(WordScorer()))
    return Service(searcher, writable=True, sync=BackgroundSync(index, [folder], print))


def test_a_new_folder_is_read_while_it_is_served(
    empty: Service, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until there are documents, searches get 503; the first ones are found before the last."""
    monkeypatch.setattr(folder_index, "FEWEST_CHARACTERS", 0)
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"Canoe {number}. " * 5)
    opened, read = Semaphore(0), folder_module.read_limited

    def read_later(stream: BufferedReader, file: Path) -> bytes:
        opened.acquire(timeout=5)  # a failure must not wait for ever
        return read(stream, file)

    monkeypatch.setattr(folder_module, "read_limited", read_later)
    with TestClient(application(empty)) as client:
        for path in ("/readyz", "/search?q=canoe"):
            said = client.get(path)
            assert (said.status_code, said.headers["retry-after"]) == (503, "1")
            assert "first documents of the folder are being read: found 0 so far" in said.text
        assert client.get("/about").json()["reading"] == 0
        opened.release(2)  # the next file is read before the documents of the last one are added
        end = time.monotonic() + PATIENCE
        while client.get("/readyz").status_code != 200 and time.monotonic() < end:
            time.sleep(0.02)
        found = client.get("/search?q=canoe").json()["hits"]
        about = client.get("/about").json()
        assert (len(found), about["documents"], about["reading"]) == (1, 1, 2)
        opened.release(100)
        while client.get("/about").json()["reading"] is not None and time.monotonic() < end:
            time.sleep(0.02)
        assert len(client.get("/search?q=canoe").json()["hits"]) == 3


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Semaphore:
    """Files are read once this is released, each once."""
    go, read = Semaphore(0), folder_module.read_limited

    def read_later(stream: BufferedReader, file: Path) -> bytes:
        go.acquire(timeout=5)
        return read(stream, file)

    monkeypatch.setattr(folder_module, "read_limited", read_later)
    return go


def test_a_write_is_newer_than_a_file_that_is_being_read(
    empty: Service, folder: Path, go: Semaphore, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is kept until the file changes, as a write after the file was read is; this is told."""
    (folder / "other.txt").write_text("A canoe.")
    with TestClient(application(empty)) as client:
        new = [{"id": "other.txt", "text": "A kayak."}, {"id": "third", "text": "A raft."}]
        assert client.post("/documents", json={"documents": new}).json()["added"] == 2
        go.release(1000)
        end = time.monotonic() + PATIENCE
        while client.get("/about").json()["reading"] is not None:
            assert time.monotonic() < end
            time.sleep(0.02)
        texts = {
            name: fields["text"] for name, fields in contents(empty.searcher.directory).items()
        }
        assert texts["other.txt"] == "A kayak."
        assert texts.keys() == {"always.txt", "other.txt", "third"}
        assert "1 document kept as written by requests, not as in files" in capsys.readouterr().out
        (folder / "other.txt").write_text("A long canoe.")
        settle(empty.searcher.directory, folder)
        while "canoe" not in contents(empty.searcher.directory)["other.txt"]["text"]:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_a_file_that_changes_after_a_write_is_newer(
    empty: Service, folder: Path, go: Semaphore
) -> None:
    """It replaces what a request wrote during the same sync, before the file was read."""
    (folder / "other.txt").write_text("A canoe.")
    with TestClient(application(empty)) as client:
        new = [{"id": "other.txt", "text": "A kayak."}]
        assert client.post("/documents", json={"documents": new}).json()["added"] == 1
        (folder / "other.txt").write_text("A long canoe.")
        go.release(1000)
        end = time.monotonic() + PATIENCE
        while client.get("/about").json()["reading"] is not None:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert contents(empty.searcher.directory)["other.txt"]["text"] == "A long canoe."


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    """It is told before anything is built, as it is by the command that builds an index."""
    (tmp_path / "files").mkdir()
    with pytest.raises(InputError, match="no documents to index"):
        empty_folder_index(FolderSource((str(tmp_path / "files"),)), tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_two_hundred_changes(served: Client, folder: Path, tmp_path: Path) -> None:
    """The index equals one that is built afresh, and no request fails meanwhile."""
    client, _ = served
    chance = random.Random(7)
    for number in range(200):
        change(folder, chance)
        if number % 4 == 0:
            answer = client.post("/search", json={"query": " ".join(chance.choices(WORDS, k=2))})
            assert answer.status_code == 200
    settle(tmp_path / "index", folder)
    build_folder_index(FolderSource((str(folder),)), tmp_path / "afresh")
    assert contents(tmp_path / "index") == contents(tmp_path / "afresh")
    assert len(contents(tmp_path / "index")) > 5
    assert find_damage(tmp_path / "index") == []


def wait_for(messages: list[str], count: int) -> None:
    """Wait until there are so many messages, which follow the commit that they are about."""
    end = time.monotonic() + PATIENCE
    while len(messages) < count and time.monotonic() < end:
        time.sleep(0.02)


def test_a_change_is_told_and_found(served: Client, folder: Path, tmp_path: Path) -> None:
    """New and deleted documents; documents that were added over HTTP stay."""
    client, messages = served
    document = {"id": "other", "text": "An iron engine."}
    assert client.post("/documents", json={"documents": [document]}).json()["added"] == 1
    (folder / "bees.txt").write_text("Bees dance by the river.")
    settle(tmp_path / "index", folder)
    hits = client.post("/search", json={"query": "bees dance"}).json()["hits"]
    assert hits[0]["doc_id"] == "bees.txt"
    (folder / "bees.txt").unlink()
    settle(tmp_path / "index", folder)
    assert set(contents(tmp_path / "index")) == {"always.txt", "other"}
    wait_for(messages, 2)
    assert messages == [
        f"{folder}: 1 document new, 0 changed, 0 deleted",
        f"{folder}: 0 documents new, 0 changed, 1 deleted",
    ]


def test_a_missing_folder_is_told_once(served: Client, folder: Path, tmp_path: Path) -> None:
    """Searches go on, and so does watching when it is back."""
    client, messages = served
    settle(tmp_path / "index", folder)
    folder.rename(folder.with_name("away"))
    end = time.monotonic() + PATIENCE
    while not messages and time.monotonic() < end:
        time.sleep(0.02)
    assert client.post("/search", json={"query": "birch"}).json()["hits"]
    time.sleep(0.1)
    assert len(messages) == 1
    assert "no such folder" in messages[0]
    folder.with_name("away").rename(folder)
    (folder / "new.txt").write_text("A new canoe.")
    while len(messages) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert "1 document new" in messages[1]


def test_skipped_files_are_told(served: Client, folder: Path, tmp_path: Path) -> None:
    """Their name and the reason are told, though nobody asked for a sync."""
    _, messages = served
    (folder / "bad.txt").write_bytes(b"\0\xff\1")
    settle(tmp_path / "index", folder)
    wait_for(messages, 1)
    assert any("bad.txt" in message and "wrong encoding" in message for message in messages)


def test_what_could_not_be_read_is_tried_again(
    served: Client, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried without any change of the file, and it is told once."""
    client, messages = served
    real = folder_module.read_limited

    def refuse(stream: BufferedReader, file: Path) -> bytes:
        raise UnreadableError("cannot be read: locked", where=str(file))

    settle(tmp_path / "index", folder)
    monkeypatch.setattr(folder_module, "read_limited", refuse)
    (folder / "bees.txt").write_text("Bees dance by the river.")
    settle(tmp_path / "index", folder)
    time.sleep(0.2)
    monkeypatch.setattr(folder_module, "read_limited", real)
    wait_for(messages, 2)
    assert messages == [
        f"skipped {folder / 'bees.txt'}: cannot be read: locked",
        f"{folder}: 1 document new, 0 changed, 0 deleted",
    ]
    assert client.post("/search", json={"query": "bees dance"}).json()["hits"]


def test_what_an_earlier_sync_could_not_finish_is_done(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though no file has changed since; it is tried until it succeeds."""
    index, done = tmp_path / "index", list[int]()
    empty_folder_index(FolderSource((str(folder),)), index)
    sync = BackgroundSync(index, [folder], print)
    outcomes = iter([ArtifactError("another process is writing"), True, True])

    def outcome(self: BackgroundSync) -> bool:
        result = next(outcomes)
        done.append(1)
        if isinstance(result, Exception):
            raise result
        return True

    monkeypatch.setattr(BackgroundSync, "_sync", outcome)
    monkeypatch.setattr(background_sync, "folder_has_changed", lambda *_, **__: False)
    with pytest.raises(ArtifactError):
        sync._work()
    for _ in range(3):
        sync._work()
    assert len(done) == 2
