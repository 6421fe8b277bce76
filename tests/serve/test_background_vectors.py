"""Does an idle service compute missing vectors, and only an idle one, whatever else happens?"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient
from served import index_directory, running, send

from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.pipeline import missing_vectors
from birchbark.pipeline.dense_engine import DenseEngine
from birchbark.pipeline.missing_vectors import MissingVectors
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import VECTORS, precompute_vectors
from birchbark.records import Document
from birchbark.retrieve.hnsw import build_graphs
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.sentences import sentences
from birchbark.serve import background_thread, background_vectors
from birchbark.serve.app import application
from birchbark.serve.background_vectors import OTHER_VECTORS, BackgroundVectors
from birchbark.serve.limits import Limits
from birchbark.serve.service import Service
from conftest import DOCUMENTS, WordScorer, write_bert

__all__ = ["index_directory"]
MANY = [Document(f"d{n}", {"text": f"A birch by river {n}. It has a bark."}) for n in range(400)]
PATIENCE = 30.0  # seconds


def wait_for(condition: Callable[[], object]) -> None:
    """Return when the condition is true; fail if it never is."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the condition is still false"
        time.sleep(0.01)


def complete(where: Path) -> bool:
    index = Index(where)
    return VECTORS in index.attachments and not index.missing_rows()


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two documents per slice, and short waits."""
    for module in (missing_vectors, background_vectors):
        monkeypatch.setattr(module, "SLICE_DOCUMENTS", 2)
    monkeypatch.setattr(background_vectors, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(background_vectors, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(background_thread, "MAX_RETRY_SECONDS", 0.01)


@pytest.fixture
def searcher(index_directory: Path, tmp_path: Path) -> Searcher:
    embedding = load_scorer(write_bert(tmp_path / "embedding"))
    return Searcher(index_directory, Ranker(WordScorer(), embedding=embedding))


def background(searcher: Searcher, messages: list[str]) -> BackgroundVectors:
    found = BackgroundVectors.of(searcher, messages.append)
    assert found
    return found


def test_an_idle_service_computes_vectors(searcher: Searcher) -> None:
    """It also does for documents added later; requests meanwhile are answered."""
    messages: list[str] = []
    service = Service(
        searcher, None, Limits(budget=20), writable=True, background=background(searcher, messages)
    )
    with TestClient(application(service)) as client:
        assert client.post("/search", json={"query": "birch"}).json()["hits"]
        wait_for(lambda: complete(searcher.directory))
        wait_for(lambda: "birchbark_documents_without_vectors 0.0" in client.get("/metrics").text)
        new = {"documents": [{"id": "tree", "text": "A birch tree. It is by the river."}]}
        assert client.post("/documents", json=new).json()["added"] == 1
        wait_for(lambda: complete(searcher.directory) and searcher.index.find("tree"))
        hits = client.post("/search", json={"query": "birch"}).json()["hits"]
        assert "tree" in [hit["doc_id"] for hit in hits]
    assert messages[0] == "computing vectors of 5 documents while idle"
    assert messages[1].startswith("computed vectors of 5 documents in ")
    assert len(messages) == 2
    assert find_damage(searcher.directory) == []


def test_an_idle_service_builds_graphs(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches use them at once; others can change the index while they are built."""
    pytest.importorskip("faiss")

    def build(*arguments: Any) -> int:
        with IndexWriter(searcher.directory):  # nothing holds its lock
            pass
        return build_graphs(*arguments, min_vectors=1)

    monkeypatch.setattr(missing_vectors, "build_graphs", build)

    def without_graph() -> int:
        engine = searcher._last.get().for_rankers
        return engine.vectors.without_graph if isinstance(engine, DenseEngine) else 1

    vectors = background(searcher, [])
    vectors.start_beside(lambda: 0)
    wait_for(lambda: complete(searcher.directory))
    wait_for(lambda: without_graph() == 0)
    vectors.stop()


def test_nothing_is_computed_while_a_request_is_active(searcher: Searcher) -> None:
    """Computing stops in the middle of a slice, too, and continues afterwards."""
    looks, busy = count(), [True]
    entered = Event()

    def active() -> int:
        if next(looks) >= 5:
            entered.set()
        return int(busy[0])

    vectors = background(searcher, [])
    vectors.start_beside(active)
    assert entered.wait(PATIENCE)
    assert VECTORS not in searcher.index.attachments
    busy[0] = False
    wait_for(lambda: VECTORS in Index(searcher.directory).attachments)
    wait_for(lambda: complete(searcher.directory))
    vectors.stop()


def test_a_request_stops_the_next_batch(searcher: Searcher) -> None:
    """The look for requests comes before each batch, not only before each slice."""
    looks, per_slice = count(), list[int]()
    vectors = MissingVectors.of(searcher)
    assert vectors
    while vectors.compute_slice(lambda: next(looks)):
        per_slice.append(next(looks))
    assert min(a - b for a, b in zip(per_slice, [0, *per_slice], strict=False)) >= 2


def test_stopping_in_the_middle_loses_no_commit(searcher: Searcher) -> None:
    """The next start continues from there."""
    first = background(searcher, [])
    blocked = Event()

    def active() -> int:  # let one slice through, then keep the thread waiting in the next
        if VECTORS in Index(searcher.directory).attachments:
            blocked.set()
        return int(blocked.is_set())

    first.start_beside(active)
    assert blocked.wait(PATIENCE)
    first.stop()
    missing = Index(searcher.directory).missing_rows()[VECTORS]
    assert 0 < missing < len(DOCUMENTS)
    assert find_damage(searcher.directory) == []
    messages: list[str] = []
    second = background(searcher, messages)
    second.start_beside(lambda: 0)
    wait_for(lambda: complete(searcher.directory))
    wait_for(lambda: len(messages) == 2)
    second.stop()
    assert messages[0] == f"computing vectors of {missing} documents while idle"


def test_stopping_without_starting_is_possible(searcher: Searcher) -> None:
    """A service may end before it has begun."""
    background(searcher, []).stop()


def test_a_searcher_without_embedding_needs_no_vectors(index_directory: Path) -> None:
    """There is nothing to compute."""
    assert BackgroundVectors.of(Searcher(index_directory, Ranker(WordScorer())), print) is None
    assert BackgroundVectors.of(Searcher(index_directory, ()), print) is None


def test_vectors_of_another_model_are_kept(searcher: Searcher, tmp_path: Path) -> None:
    """This is said once; vectors of added documents are then computed when they are added."""
    other = write_bert(tmp_path / "other", seed=1)
    with IndexWriter(searcher.directory) as writer:
        precompute_vectors(load_scorer(other), sentences, str(other)).attach(writer)
    schema = Index(searcher.directory).attachments[VECTORS]
    messages: list[str] = []
    service = Service(searcher, background=background(searcher, messages), writable=True)
    service.start()
    wait_for(lambda: messages)
    for name in ("one", "two"):
        service.add([Document(name, {"text": "birch"})])
        assert complete(searcher.directory)
    service.close()
    assert messages == [OTHER_VECTORS]
    assert Index(searcher.directory).attachments[VECTORS] == schema


def test_another_writer_is_waited_for(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it writes, nothing is stored; when it ends, computing continues."""
    monkeypatch.setattr("birchbark.index.writer.LOCK_SECONDS", 0.0)
    messages: list[str] = []
    vectors = background(searcher, messages)
    with IndexWriter(searcher.directory) as writer:
        vectors.start_beside(lambda: 0)
        wait_for(lambda: len(messages) == 2)
        assert "another process is writing" in messages[1]
        writer.add(Document("tree", {"text": "A birch tree."}))
    wait_for(lambda: complete(searcher.directory) and searcher.index.find("tree"))
    vectors.stop()
    assert sum("another process" in message for message in messages) == 1


def test_errors_do_not_end_it(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is reported once, and computing continues when there is room again."""
    errors, real = count(), IndexWriter.attach_slice

    def full(*arguments: object) -> None:
        if next(errors) < 9:
            raise OSError("no space left on device")
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(IndexWriter, "attach_slice", full)
    messages: list[str] = []
    vectors = background(searcher, messages)
    vectors.start_beside(lambda: 0)
    wait_for(lambda: complete(searcher.directory))
    vectors.stop()
    reports = [message for message in messages if "no space left" in message]
    assert len(reports) == 1
    assert "searches work" in reports[0]


@pytest.mark.slow
def test_a_killed_service_leaves_an_intact_index(tmp_path: Path) -> None:
    """Whenever the kill comes, the next start continues, and committed vectors are kept."""
    model = write_bert(tmp_path / "bert", labels=1)
    embedding = write_bert(tmp_path / "embedding")
    build_index(MANY, tmp_path / "index")
    words = ("index", "--model", model, "--embedding", embedding)
    seen = 0
    for round_ in range(3):
        with running(*words, cwd=tmp_path):  # it is killed at the end
            wait_for(partial(more_covered, tmp_path / "index", seen))
            time.sleep(0.01 * round_)
        seen = covered(tmp_path / "index")
        assert find_damage(tmp_path / "index") == []
    with running(*words, cwd=tmp_path) as (port, process):
        wait_for(lambda: complete(tmp_path / "index"))
        assert send(port, "POST", "/search", {"query": "birch river 7"})[0] == 200
        process.terminate()
        assert process.wait(20) == 0
    assert find_damage(tmp_path / "index") == []


def more_covered(where: Path, seen: int) -> bool:
    return covered(where) > seen or seen == len(MANY)


def covered(where: Path) -> int:
    index = Index(where)
    has = VECTORS in index.attachments
    return len(index) - index.missing_rows().get(VECTORS, 0) if has else 0


def test_the_flag_switches_it_off(tmp_path: Path) -> None:
    """Searches are answered without vectors."""
    model = write_bert(tmp_path / "bert", labels=1)
    embedding = write_bert(tmp_path / "embedding")
    build_index(DOCUMENTS, tmp_path / "index")
    words = ("index", "--model", model, "--embedding", embedding, "--no-background-vectors")
    with running(*words, cwd=tmp_path) as (port, process):
        assert send(port, "POST", "/search", {"query": "birch"})[0] == 200
        assert b"documents_without_vectors" not in send(port, "GET", "/metrics")[1]
        process.terminate()
        assert process.wait(20) == 0
    assert VECTORS not in Index(tmp_path / "index").attachments
