"""Does work in the background go on after any failure, and do people learn of it?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient
from served import index_directory

from birchbark.errors import ArtifactError
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.serve import background_sync, background_thread
from birchbark.serve.app import application
from birchbark.serve.background_sync import BackgroundSync
from birchbark.serve.background_thread import REPORTED_FAILURES, BackgroundThread
from birchbark.serve.service import Service
from conftest import WordScorer

__all__ = ["index_directory"]
MEANING = "nothing is done"
FAILING = "changed files are not read, but searches work: RecursionError"


class PanicError(BaseException):
    """As compiled libraries raise them."""


class Work(BackgroundThread):
    """Raises the given errors, one after another, and then succeeds."""

    def __init__(self, errors: Iterator[BaseException], report: Callable[[str], object]) -> None:
        super().__init__("work", MEANING, report)
        self.errors, self.done = errors, 0

    def _work(self) -> float:
        for error in self.errors:
            raise error
        self.done += 1
        return 0.001


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_thread, "MAX_RETRY_SECONDS", 0.001)


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "the condition is still false"
        time.sleep(0.005)


def test_the_end_of_long_work_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread ends with the process, as while a large file is read."""
    begun, go = Event(), Event()

    class LongWork(BackgroundThread):
        def _work(self) -> float:
            begun.set()
            go.wait(20)
            return 0.0

    monkeypatch.setattr(background_thread, "STOP_SECONDS", 0.01)
    work = LongWork("work", MEANING, print)
    work.start()
    assert begun.wait(20)
    start = time.monotonic()
    work.stop()
    assert time.monotonic() - start < 10
    assert work._thread.daemon
    go.set()
    work._thread.join(20)
    assert not work._thread.is_alive()


@pytest.mark.parametrize(
    ("error", "reason", "message", "logged"),
    [
        (RecursionError("too deep"), "RecursionError", "RecursionError('too deep')", True),
        (PanicError("index out of range"), "PanicError", "PanicError('index out of range')", True),
        (MemoryError(), "MemoryError", "MemoryError()", True),
        (PermissionError(13, "not allowed", "/secret"), "not allowed", "/secret", False),
        (ArtifactError("damaged", where="/secret"), "damaged", "/secret: damaged", False),
    ],
)
def test_it_is_tried_again_after_any_error(
    error: BaseException,
    reason: str,
    message: str,
    logged: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What fails several times is told once, with its traceback if nobody expects it."""
    messages: list[str] = []
    broken = True
    work = Work(iter(lambda: error if broken else None, None), messages.append)
    with caplog.at_level(logging.ERROR, "birchbark.serve"):
        work.start()
        wait_for(lambda: work.failures > 2 * REPORTED_FAILURES)
        assert work.failing == f"{MEANING}: {reason}"
        broken = False
        wait_for(lambda: work.done > 2)
        work.stop()
    assert (work.failures, work.failing) == (0, "")
    assert len(messages) == 1
    assert message in messages[0]
    assert len(caplog.records) == logged
    assert "/secret" not in reason


def test_a_report_that_nobody_reads_does_not_end_it() -> None:
    """Nobody reads a report when standard error is closed."""

    def closed(message: str) -> None:
        raise BrokenPipeError

    work = Work(iter([OSError(5, "input/output error")] * 9), closed)
    work.start()
    wait_for(lambda: work.done)
    work.stop()


def test_people_learn_of_it(index_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/readyz tells it without a key or file names, and so do /metrics and the page."""

    def broken(*arguments: Any, **options: Any) -> bool:
        raise RecursionError

    monkeypatch.setattr(BackgroundSync, "_sync", broken)
    sync = BackgroundSync(index_directory, [index_directory], lambda message: None)
    service = Service(Searcher(index_directory, Ranker(WordScorer())), sync=sync)
    with TestClient(application(service, key="k")) as client:
        wait_for(lambda: sync.failing)
        assert client.get("/readyz").json() == {"status": "ready", "failing": [FAILING]}
        client.headers["authorization"] = "Bearer k"
        assert client.get("/about").json()["failing"] == [FAILING]
        sample = 'birchbark_background_failures{work="sync"} '
        (line,) = (x for x in client.get("/metrics").text.splitlines() if x.startswith(sample))
        assert float(line.removeprefix(sample)) >= REPORTED_FAILURES
        monkeypatch.setattr(BackgroundSync, "_sync", lambda self: True)
        monkeypatch.setattr(background_sync, "folder_has_changed", lambda *_, **__: False)
        wait_for(lambda: not sync.failing)
        assert client.get("/readyz").json() == {"status": "ready", "failing": []}
