"""Are writes that wait together committed together, each with its own answer?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, nullcontext
from threading import Event

import pytest

from birchbark.errors import ArtifactError, InputError
from birchbark.pipeline.upkeep.update_index import AddedDocuments
from birchbark.records import Document
from birchbark.serve import write_queue
from birchbark.serve.admission import BusyError
from birchbark.serve.schemas import WriteResponse
from birchbark.serve.write_queue import WriteQueue


class Store:
    """Documents in memory; the first commit waits for `go`."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {"old": "x"}
        self.commits, self.began, self.go = 0, Event(), Event()
        self.fault: BaseException | None = None

    def change(self, documents: Sequence[Document], deleted: Sequence[str]) -> AddedDocuments:
        self.began.set()
        assert self.go.wait(20)
        if self.fault:
            raise self.fault
        if bad := [document.doc_id for document in documents if document.doc_id == "bad"]:
            raise InputError(f"document {bad[0]} cannot be indexed")
        self.commits += 1
        self.texts |= {document.doc_id: document.text for document in documents}
        for doc_id in deleted:
            self.texts.pop(doc_id, None)
        return AddedDocuments(0, 0)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def queue(store: Store) -> Iterator[WriteQueue]:
    """A queue whose thread is busy with a first write until `store.go` is set."""
    made = WriteQueue(store.change, lambda doc_id: doc_id in store.texts, nullcontext)
    made.submit([Document("first", {"text": "1"})])
    assert store.began.wait(20)
    yield made
    store.go.set()
    made.close()


def document(doc_id: str, text: str = "x") -> list[Document]:
    return [Document(doc_id, {"text": text})]


def test_what_waits_shares_a_commit(queue: WriteQueue, store: Store) -> None:
    """Writes keep the order of arrival; each is told what it alone has changed."""
    written = [
        queue.submit(document("a", "1")),
        queue.submit(document("a", "2")),
        queue.submit(document("old")),
        queue.submit(delete=["a", "nobody"]),
        queue.submit(document("a", "3")),
        queue.submit(delete=["old"]),
        queue.submit([*document("b"), *document("b", "twice")]),
    ]
    store.go.set()
    answers = [one.result(20) for one in written]
    assert store.commits == 2
    assert store.texts == {"first": "1", "a": "3", "b": "twice"}
    assert answers == [
        WriteResponse(added=1),
        WriteResponse(replaced=1),
        WriteResponse(replaced=1),
        WriteResponse(deleted=1),
        WriteResponse(added=1),
        WriteResponse(deleted=1),
        WriteResponse(added=1, replaced=1),
    ]


def test_a_bad_document_fails_alone(queue: WriteQueue, store: Store) -> None:
    good, bad, other = (queue.submit(document(name)) for name in ("a", "bad", "b"))
    store.go.set()
    assert good.result(20).added == other.result(20).added == 1
    with pytest.raises(InputError, match="bad"):
        bad.result(20)
    assert store.texts.keys() == {"old", "first", "a", "b"}


def test_a_failed_commit_fails_all(queue: WriteQueue, store: Store) -> None:
    """The next writes are tried again."""
    store.fault = ArtifactError("another process is writing")
    written = [queue.submit(document(name)) for name in "abc"]
    store.go.set()
    wait(written, 20)
    assert {type(one.exception()) for one in written} == {ArtifactError}
    store.fault = None
    assert queue.submit(document("d")).result(20).added == 1


def test_a_panic_of_a_library_ends_a_write_and_not_the_thread(
    queue: WriteQueue, store: Store
) -> None:
    """Those of Rust are no exceptions of the usual kind."""

    class PanicError(BaseException):
        pass

    store.fault = PanicError("panic in Rust")
    written = queue.submit(document("a"))
    store.go.set()
    with pytest.raises(RuntimeError, match="panic in Rust"):
        written.result(20)
    store.fault = None
    assert queue.submit(document("b")).result(20).added == 1


def test_a_cancelled_write_changes_nothing(queue: WriteQueue, store: Store) -> None:
    cancelled, kept = queue.submit(document("a")), queue.submit(document("b"))
    assert cancelled.cancel()
    store.go.set()
    assert kept.result(20).added == 1
    assert "a" not in store.texts


def test_a_write_can_be_cancelled_until_its_turn(store: Store) -> None:
    """While something else writes, such as the folder's sync, it has not begun."""
    waits, turn = Event(), Event()

    @contextmanager
    def other_writer_ends() -> Iterator[None]:
        waits.set()
        assert turn.wait(20)
        yield

    store.go.set()
    queue = WriteQueue(store.change, lambda doc_id: doc_id in store.texts, other_writer_ends)
    cancelled = queue.submit(document("a"))
    assert waits.wait(20)
    assert cancelled.cancel()
    turn.set()
    assert queue.submit(document("b")).result(20).added == 1
    queue.close()
    assert store.texts.keys() == {"old", "b"}


def test_too_many_waiting_writes_are_refused(
    queue: WriteQueue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue, "MAX_WAITING", 3)
    written = [queue.submit(document(name)) for name in "abc"]
    with pytest.raises(BusyError, match="3 waiting"):
        queue.submit(document("d"))
    store.go.set()
    wait(written, 20)
    assert queue.submit(document("d")).result(20).added == 1


def test_large_writes_are_not_joined_without_end(
    queue: WriteQueue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue, "MAX_TOGETHER", 2)
    written = [queue.submit(document(name)) for name in "abcdef"]
    store.go.set()
    wait(written, 20)
    assert store.commits >= 3
    assert store.texts.keys() >= set("abcdef")
