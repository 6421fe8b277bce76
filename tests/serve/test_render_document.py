"""Are documents of strangers rendered within limits of time and memory?"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from threading import Event, Semaphore
from typing import Any

import pytest
from fastapi.testclient import TestClient
from test_shown_text import PAGE

from birchbark.collection.files.folder_state import FolderSource
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.upkeep.folder_index import build_folder_index
from birchbark.process_limits import start_limited
from birchbark.records import Document
from birchbark.serve import render_document
from birchbark.serve.admission import BusyError
from birchbark.serve.app import application
from birchbark.serve.original_files import OriginalFiles
from birchbark.serve.render_document import MOST_WAITING, DocumentRenderer, Rendered
from birchbark.serve.service import QUICK_THREADS, RENDERING_THREADS, Service
from conftest import WordScorer


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TestClient]:
    files = {
        "boats.html": PAGE,
        "barge.html": "<p>A barge.</p>",
        "sub/a.md": "# Title\n\nSee [boats](../boats.html) and [none](none.md).",
        "long.md": "word " * 50_000,
        "plain.txt": "<b>A birch.</b>",
        "in.mbox": "From a Tue\nSubject: s\nContent-Type: text/html; name=x.html\n"
        "Content-Disposition: attachment; filename=x.html\n\n<p>A reed.</p>",
    }
    for name, text in files.items():
        (tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / name).write_text(text)
    build_folder_index(FolderSource((str(tmp_path / "files"),)), tmp_path / "index")
    searcher = Searcher(tmp_path / "index", Ranker(WordScorer()))
    with TestClient(application(Service(searcher), "secret")) as client:
        client.headers["authorization"] = "Bearer secret"
        yield client


def test_documents_are_rendered(service: TestClient) -> None:
    """Links lead to documents of the index; text files and attached pages are not rendered."""
    page = service.get("/rendered/boats.html").json()
    assert "<b>canoe</b>" in page["markup"]
    assert page["links"] == ["barge.html"]
    assert len(page["runs"]) == 1
    markdown = service.get("/rendered/sub/a.md").json()
    assert markdown["links"] == ["boats.html", None]
    assert service.get("/rendered/plain.txt").json()["markup"] == ""
    long = service.get("/rendered/long.md").json()
    assert (long["markup"], long["reason"]) == ("", "it has more than 200,000 characters")
    hits = service.post("/search", json={"query": "reed"}).json()["hits"]
    attached = service.get(f"/rendered/{hits[0]['doc_id']}").json()
    assert hits[0]["doc_id"].endswith("x.html")
    assert (attached["markup"], attached["reason"]) == ("", "")


def test_rendering_needs_the_key_and_a_document(service: TestClient) -> None:
    assert service.get("/rendered/nothing").status_code == 404
    assert service.get("/rendered/../index/folder.json").status_code == 404
    del service.headers["authorization"]
    assert service.get("/rendered/boats.html").status_code == 401


def test_time_and_memory_are_bounded(service: TestClient, tmp_path: Path) -> None:
    """The page would need many gigabytes, since each paragraph repeats the open elements."""
    bomb = "".join(f"<p><b title={n}>x" for n in range(8_000))
    (tmp_path / "files" / "barge.html").write_text(bomb)
    start = time.monotonic()
    found = service.get("/rendered/barge.html").json()
    assert (found["markup"], found["reason"]) == ("", "it cannot be rendered within 5 s")
    assert time.monotonic() - start < 2 * MOST_WAITING


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Popen[bytes]]:
    """The processes that render."""
    processes: list[Popen[bytes]] = []

    def start(*arguments: Any) -> Popen[bytes]:
        processes.append(start_limited(*arguments))
        return processes[-1]

    monkeypatch.setattr(render_document, "start_limited", start)
    return processes


TEXT = Document("a", {"type": "markdown", "text": "# A canoe"})


def test_rendering_ends_when_nobody_waits(
    tmp_path: Path, started: list[Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not begin then, or it ends if it has begun."""
    monkeypatch.setattr(render_document, "STEP", 0.001)  # before any interpreter has started
    renderer = DocumentRenderer(OriginalFiles(tmp_path), lambda _: True)
    for looks in (1, 2):
        seen = []

        def leave(looks: int = looks, seen: list[int] = seen) -> None:
            seen.append(1)
            if len(seen) == looks:
                raise BusyError("the client has left")

        with pytest.raises(BusyError):
            renderer.render(TEXT, leave)
        assert len(started) == looks - 1
    assert started[0].returncode == -signal.SIGKILL


def test_a_failure_is_remembered(
    tmp_path: Path, started: list[Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that cannot be rendered costs its time once; another one is tried."""
    monkeypatch.setattr(render_document, "MODULE", "json.tool")  # fails
    renderer = DocumentRenderer(OriginalFiles(tmp_path), lambda _: True)
    for _ in range(3):
        assert "cannot be rendered" in renderer.render(TEXT, lambda: None).reason
    assert len(started) == 1
    other = replace(TEXT, fields={**TEXT.fields, "text": "# Another"})
    assert "cannot be rendered" in renderer.render(other, lambda: None).reason
    assert len(started) == 2


def test_searches_do_not_wait_for_renderings(
    service: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that render have threads of their own."""
    begun, go_on = Semaphore(0), Event()

    def wait(*_: Any) -> Rendered:
        begun.release()
        assert go_on.wait(20)
        return Rendered()

    monkeypatch.setattr(DocumentRenderer, "render", wait)
    with ThreadPoolExecutor(QUICK_THREADS + 1) as pool:
        waiting = [
            pool.submit(service.get, "/rendered/boats.html") for _ in range(QUICK_THREADS + 1)
        ]
        for _ in range(RENDERING_THREADS):
            assert begun.acquire(timeout=20)
        assert service.get("/facets", params={"query": "canoe"}).status_code == 200
        assert not any(answer.done() for answer in waiting)
        go_on.set()
        assert [answer.result().status_code for answer in waiting] == [200] * len(waiting)


def test_a_long_document_is_given_as_a_whole(tmp_path: Path) -> None:
    """Its text is longer than what a pipe holds, and is read after the process has started."""
    text = "A canoe of bark.\n\n" * 11_000
    long = replace(TEXT, fields={**TEXT.fields, "text": text})
    seen: list[int] = []
    renderer = DocumentRenderer(OriginalFiles(tmp_path), lambda _: True)
    rendered = renderer.render(long, lambda: seen.append(1))
    assert rendered.markup.count("<p") == 11_000
    assert len(seen) > 1
