"""How does the service behave under load, after disconnects and when time is short?"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event
from typing import Any

import pytest
from served import client, index_directory
from starlette.exceptions import HTTPException

from birchbark.errors import ArtifactError
from birchbark.pipeline.answers.answer import Answer, SearchStats
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Float32s, Ids
from birchbark.retrieve.query_language import literal_query
from birchbark.serve.admission import AdmissionControl
from birchbark.serve.answer_stream import AnswerStream, DisconnectedError
from birchbark.serve.app import application, fastapi_app
from birchbark.serve.disconnect import cancel_on_disconnect
from birchbark.serve.limits import Limits
from birchbark.serve.schemas import SearchRequest
from birchbark.serve.service import MAX_QUEUE_SECONDS, QUICK_THREADS, SCORING_SHARE
from conftest import WordScorer

__all__ = ["client", "index_directory"]


class BlockedScorer(WordScorer):
    """Scores once it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.started = Event(), Event()

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        self.started.set()
        assert self.go.wait(20)
        return super().score(query, token_ids)


def test_a_crowd_shares_the_time(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more requests than slots each search gets its share of a budget, else most of it."""
    service = client(Ranker(WordScorer()), Limits(budget=10, max_concurrent=2))
    inner = service.app.service
    budgets: list[float] = []
    search = inner.searcher.search

    def record(query: str, top: int, budget: float, **options: Any) -> Answer:
        budgets.append(budget)
        answer: Answer = search(query, top, budget, **options)
        return answer

    monkeypatch.setattr(inner.searcher, "search", record)
    for others in (0, 1, 7):
        inner.admission.active += others
        assert service.post("/search", json={"query": "birch"}).status_code == 200
        inner.admission.active -= others
    alone, with_one, with_seven = budgets
    assert 5 < with_one <= SCORING_SHARE * 10
    assert 5 < alone <= SCORING_SHARE * 10
    assert with_seven == pytest.approx(SCORING_SHARE * 10 * 2 / 8)


def test_a_request_that_waited_too_long_goes_on_without_scoring() -> None:
    """Neither it nor a request cancelled while waiting takes a scoring slot."""

    async def crowd() -> None:
        admission = AdmissionControl(Limits(max_concurrent=1))
        first, second = await admission.acquire(1), await admission.acquire(0.01)
        assert (first.may_score, second.may_score) == (True, False)
        waiting = asyncio.create_task(admission.acquire(60))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert admission.active == 2
        first.release()
        assert (await admission.acquire(0.01)).may_score
        assert not (await admission.acquire(None)).may_score

    asyncio.run(crowd())


def test_a_request_waits_for_one_that_was_abandoned(client: Any) -> None:
    """One person who sends search after search, with one slot: each waits, and the last is read."""

    class Slow(WordScorer):
        def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
            time.sleep(0.1)
            return super().score(query, token_ids)

    service = client(Ranker(Slow()), Limits(budget=10, max_concurrent=1)).app.service

    async def crowd() -> None:
        service.admission._mean_seconds = 60.0  # what others would wait
        for number in range(5):
            request = SearchRequest(query=f"birch river {number}")
            search = asyncio.create_task(service.search(request))
            async with asyncio.timeout(5):
                while not service.admission._scoring - service.admission._abandoned:
                    await asyncio.sleep(0.005)
            assert service.admission.fair_share(10) == 10
            search.cancel()
            with pytest.raises(asyncio.CancelledError):
                await search
        assert (await service.search(SearchRequest(query="birch river"))).exact
        await asyncio.sleep(0.05)
        assert not service.admission._abandoned

    asyncio.run(crowd())


def test_an_overloaded_service_falls_back_to_the_first_stage_then_refuses(client: Any) -> None:
    """One scores, one waits, two get first-stage results, the fifth gets 503 with Retry-After."""
    scorer = BlockedScorer()
    service = client(Ranker(scorer), Limits(budget=15, max_concurrent=1, max_requests=4))
    ask = {"query": "birch river"}
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(service.post, "/search", json=ask)
        assert scorer.started.wait(10)
        second = pool.submit(service.post, "/search", json={"query": "iron"})
        while service.app.service.admission.active < 2:
            pass
        service.app.service.admission._mean_seconds = 60.0
        fallback = service.post("/search", json=ask).json()
        assert not fallback["exact"]
        assert not any(hit["scored"] for hit in fallback["hits"])
        plain = service.post("/search", json={**ask, "by": "first_stage"}).json()
        assert plain["exact"]
        assert [h["doc_id"] for h in fallback["hits"]] == [h["doc_id"] for h in plain["hits"]]
        service.app.service.admission.active += 2  # as if two more requests were active
        for path in ("/search", "/search/stream"):
            refused = service.post(path, json=ask)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
        assert service.get("/readyz").status_code == 503
        assert (
            service.post("/v2/rerank", json={"query": "a", "documents": ["b"]}).status_code == 503
        )
        assert service.get("/healthz").status_code == 200
        service.app.service.admission.active -= 2
        scorer.go.set()
        assert first.result().json()["exact"]
        assert second.result().json()["exact"]
    assert service.app.service.admission.active == 0


def test_an_exception_does_not_affect_other_searches(client: Any) -> None:
    """The answer is 500 without details, and the slot is released."""

    class Broken(WordScorer):
        def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
            if query == "iron":
                raise RuntimeError("secret detail")
            return super().score(query, token_ids)

    service = client(Ranker(Broken()), Limits(budget=5, max_concurrent=1), raises=False)
    for _ in range(3):
        answer = service.post("/search", json={"query": "iron"})
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert service.post("/search", json={"query": "birch"}).json()["exact"]


def test_a_search_that_cannot_begin_leaves_its_slot(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only work in a thread would release it, and there is none."""

    def fail(*args: Any, **settings: Any) -> None:
        raise ArtifactError("the index cannot be opened")

    service = client(Ranker(WordScorer()), Limits(max_concurrent=1), raises=False)
    with monkeypatch.context() as patched:
        patched.setattr("birchbark.serve.service.AnswerStream", fail)
        assert service.post("/search", json={"query": "birch"}).status_code == 503
    assert service.app.service.admission.active == 0
    assert service.post("/search", json={"query": "birch"}).json()["exact"]


def test_a_slot_is_held_as_long_as_its_search(client: Any) -> None:
    """It is released if a stream is not read to its end, but held while its search still runs."""
    scorer = BlockedScorer()
    service = client(Ranker(scorer), Limits(budget=15, max_concurrent=1)).app.service
    request = SearchRequest(query="birch river")

    async def idle() -> None:
        scorer.go.set()
        answers = service.stream(request)
        await anext(answers)
        await until(lambda: service.admission.active == 0)  # without reading the stream
        await answers.aclose()

    async def gone() -> None:
        scorer.go.clear()
        scorer.started.clear()
        task = asyncio.create_task(service.search(SearchRequest(query="iron")))
        await until(scorer.started.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)
        assert service.admission.active == 1
        scorer.go.set()
        await until(lambda: service.admission.active == 0)

    async def until(holds: Any) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.005)

    asyncio.run(idle())
    service.admission = AdmissionControl(service.limits)  # of the next event loop
    asyncio.run(gone())


def test_a_search_ends_after_a_disconnect() -> None:
    """Leaving a stream ends the thread at the next progress report."""
    ended = Event()

    def search(on_progress: Any) -> Answer:
        try:
            for _ in range(10_000):
                on_progress(lambda: Answer((), SearchStats(exact=False)))
                Event().wait(0.001)
        except DisconnectedError:
            ended.set()
            raise
        return Answer((), SearchStats())

    async def leave() -> None:
        stream = AnswerStream(literal_query("q"), 0.0, intermediate=True)
        with ThreadPoolExecutor(1) as pool:
            running = asyncio.wrap_future(pool.submit(stream.run, search))
            answers = stream.answers(running)
            await anext(answers)
            await answers.aclose()
            with pytest.raises(asyncio.CancelledError):  # no client reads the stream that it ended
                await running

    asyncio.run(leave())
    assert ended.is_set()


def test_a_disconnect_while_waiting_for_a_thread_releases_the_slot(client: Any) -> None:
    """No unhandled exception is left to the event loop."""
    service = client(Ranker(WordScorer())).app.service
    go, unheard = Event(), []

    async def leave() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: unheard.append(context))
        held = [service._quick_pool.submit(go.wait, 20) for _ in range(QUICK_THREADS)]
        request = SearchRequest(query="birch", by="first_stage", budget_ms=1)
        task = asyncio.create_task(service.search(request))
        await asyncio.sleep(0.05)
        assert service.admission.active == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)
        assert service.admission.active == 0
        go.set()
        assert all(one.result() for one in held)
        await asyncio.sleep(0.05)

    asyncio.run(leave())
    gc.collect()
    assert not unheard


def test_work_is_cancelled_on_disconnect() -> None:
    """A client that stays gets its result."""

    class Asked:
        def __init__(self, seconds: float) -> None:
            self.seconds = seconds

        async def receive(self) -> dict[str, str]:
            await asyncio.sleep(self.seconds)
            return {"type": "http.disconnect"}

    ended = []

    async def work() -> int:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            ended.append(True)
            raise
        return 7

    async def both() -> None:
        stays: Any = Asked(60)
        leaves: Any = Asked(0.01)
        assert await cancel_on_disconnect(stays, work()) == 7
        with pytest.raises(HTTPException):
            await cancel_on_disconnect(leaves, work())
        await asyncio.sleep(0)

    asyncio.run(both())
    assert ended == [True]


def test_scoring_ends_after_a_disconnect(client: Any) -> None:
    """Scoring of texts and documents stops at the next batch, and the slot is released."""

    class Slow(WordScorer):
        batches = 0

        def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
            self.batches += 1
            time.sleep(0.05)
            return super().score(query, token_ids)

    scorer = Slow()
    service = client(Ranker(scorer), Limits(budget=20, max_time=20)).app.service
    long = ". ".join(f"birch {n}" for n in range(4_000))
    service.searcher.add([Document("long", {"text": long})])

    async def leave(work: Any) -> int:
        service.admission, scorer.batches = AdmissionControl(service.limits), 0
        task = asyncio.create_task(work)
        async with asyncio.timeout(15):
            while scorer.batches < 2:
                await asyncio.sleep(0.005)
            task.cancel()
            while service.admission.active:
                await asyncio.sleep(0.005)
        with pytest.raises(asyncio.CancelledError):
            await task
        return scorer.batches

    assert asyncio.run(leave(service.document("long", "birch"))) < 6
    texts = [f"birch {n}" for n in range(4_000)]
    assert asyncio.run(leave(service.rerank("birch", texts))) < 6


def test_a_failed_write_is_reported_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client is told, and the event loop is not told as well."""
    service, unheard = client(writable=True).app.service, []

    def fill(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(service.searcher, "add", fill)

    async def write() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: unheard.append(context))
        for _ in range(2):  # the thread that writes remembers the last one
            with pytest.raises(OSError, match="No space left"):
                await service.write([Document("new", {"text": "new"})])
            gc.collect()

    asyncio.run(write())
    gc.collect()
    assert not unheard


def test_too_long_a_wait_for_a_thread_gets_503(client: Any) -> None:
    """Searches of the first stage alone have a time limit as well."""
    service = client()
    go = Event()
    inner = service.app.service
    held = [inner._quick_pool.submit(go.wait, 20) for _ in range(QUICK_THREADS)]
    with ThreadPoolExecutor(1) as pool:
        ask = {"query": "birch", "by": "first_stage", "budget_ms": 1}
        late = pool.submit(service.post, "/search", json=ask)
        while not inner.admission.active:
            time.sleep(0.01)
        time.sleep(2 * MAX_QUEUE_SECONDS)
        go.set()
        answer = late.result()
    assert all(future.result() for future in held)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert service.post("/search", json=ask).status_code == 200
    inner.admission.active += inner.limits.max_requests
    assert service.post("/search", content=b"{").status_code == 503  # before the body is read
    inner.admission.active -= inner.limits.max_requests


def test_a_request_too_large_for_an_idle_service_gets_413(client: Any) -> None:
    """Clients retry after 503; such a request would occupy a slot each time."""

    class Slow(WordScorer):
        meets: Barrier | None = None

        def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
            if self.meets:
                with suppress(BrokenBarrierError):
                    self.meets.wait(5)
            time.sleep(1.3)
            return super().score(query, token_ids)

    scorer = Slow()
    service = client(Ranker(scorer), Limits(budget=1, max_time=1, max_concurrent=2))
    texts = [f"birch {n}" for n in range(200)]
    answer = service.post("/v2/rerank", json={"query": "birch", "documents": texts})
    assert answer.status_code == 413
    assert "retry-after" not in answer.headers
    assert answer.json()["wanted"] == "what can be scored in 1 s"
    scorer.meets = Barrier(2)
    with ThreadPoolExecutor(2) as pool:  # each might have been in time on its own
        request = {"query": "birch", "documents": texts}
        both = [pool.submit(service.post, "/v2/rerank", json=request) for _ in range(2)]
        assert {one.result().status_code for one in both} == {503}


WORK_WITHOUT_SCORING = [
    ("correct", "/spelling?query=brich"),
    ("facets", "/facets?query=birch"),
    ("documents", "/documents/canoe"),
]


@pytest.mark.parametrize(("method", "path"), WORK_WITHOUT_SCORING)
def test_work_that_does_not_score_has_a_time_limit(
    client: Any, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    """A client gets 503 after the maximum time, and the slot is released when the work ends."""
    service = client(Ranker(WordScorer()), Limits(budget=0.2, max_time=0.2))
    inner, go = service.app.service, Event()
    real = getattr(inner.searcher, method)

    def blocked(*arguments: Any, **options: Any) -> Any:
        assert go.wait(20)
        return real(*arguments, **options)

    monkeypatch.setattr(inner.searcher, method, blocked)
    answer = service.get(path)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["wanted"] == "an answer within 0.2 s"
    assert inner.admission.active == 1
    monkeypatch.undo()
    go.set()
    while inner.admission.active:
        time.sleep(0.01)
    assert service.get(path).status_code == 200


@pytest.mark.parametrize(("method", "path"), WORK_WITHOUT_SCORING[:2])
def test_work_that_does_not_score_ends_after_a_disconnect(
    client: Any, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    """It ends at its next step, however many would follow; its thread is free for others."""
    inner = client(Ranker(WordScorer()), Limits(budget=20)).app.service
    real, started, ended = getattr(inner.searcher, method), Event(), Event()

    def endless(*arguments: Any, on_batch: Any, **options: Any) -> Any:
        def slow() -> None:
            started.set()
            time.sleep(0.01)
            on_batch()

        try:
            while True:
                real(*arguments, on_batch=slow, **options)
        finally:
            ended.set()

    monkeypatch.setattr(inner.searcher, method, endless)

    async def leave() -> None:
        gone = asyncio.Event()
        scope = {
            "type": "http",
            "method": "GET",
            "path": path.partition("?")[0],
            "query_string": path.partition("?")[2].encode(),
            "headers": [(b"host", b"testserver")],
        }
        messages = [{"type": "http.request", "body": b""}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pass

        answering = asyncio.create_task(application(inner)(scope, receive, send))
        async with asyncio.timeout(15):
            while not started.is_set():
                await asyncio.sleep(0.01)
            gone.set()
            await answering
            while inner.admission.active:
                await asyncio.sleep(0.01)

    asyncio.run(leave())
    assert ended.is_set()


def test_every_route_that_reads_the_disk_is_admitted(client: Any, tmp_path: Path) -> None:
    """Under overload they are refused; files of the page and the state of the service are not."""
    service = client(reports=tmp_path)
    inner = service.app.service
    inner.admission.active += inner.limits.max_requests
    served = {
        path: service.get(path).status_code
        for path in (
            *("/spelling?query=q", "/facets?query=q", "/search?q=q", "/documents/d"),
            *("/files/d", "/about", "/reports/", "/reports/r", "/reports/r/", "/reports/r/p.html"),
            *(
                "/readyz",
                "/",
                "/docs",
                "/page/page.js",
                "/healthz",
                "/metrics",
                "/openapi.json",
                "/info",
            ),
        )
    }
    inner.admission.active -= inner.limits.max_requests
    refused = [path for path, status in served.items() if status == 503]
    assert refused == [*served][:11]
    scoring = {"/search/stream", "/documents", "/attention", "/v1/rerank", "/v2/rerank", "/rerank"}
    scoring |= {"/v1/embeddings", "/embed"}
    by_id = {"/documents/{doc_id}", "/files/{doc_id}"}
    asked = {path.partition("?")[0] for path in served}
    assert set(fastapi_app(inner).openapi()["paths"]) <= asked | scoring | by_id
