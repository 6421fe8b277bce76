"""What do people get when more of them ask than can be served?"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, Event
from typing import Any

import pytest
from served import client, place
from starlette.exceptions import HTTPException

from birchbark.pipeline.answer import Answer, Work
from birchbark.pipeline.ranker import Ranker
from birchbark.records import Document, Float32s, Ids
from birchbark.serve.gate import BusyError, Gate
from birchbark.serve.limits import Limits
from birchbark.serve.presence import while_there
from birchbark.serve.service import QUEUE, QUICK_THREADS
from birchbark.serve.shapes import SearchRequest
from birchbark.serve.told import GoneError, Told
from conftest import WordScorer

__all__ = ["client", "place"]


class Held(WordScorer):
    """Scores when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.asked = Event(), Event()

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        self.asked.set()
        assert self.go.wait(20)
        return super().score(query, pieces)


def test_the_gate_gives_turns_then_haste_then_refusals() -> None:
    """Two at work, two wait; who cannot hope for a turn is sent on at once; a sixth is refused."""

    async def crowd() -> None:
        gate = Gate(Limits(at_work=2, inside=5))
        first, second = await gate.come(60), await gate.come(60)
        gate._seconds = 10.0
        waiting = [asyncio.create_task(gate.come(11)) for _ in range(2)]
        await asyncio.sleep(0.01)
        hurried = await gate.come(11)  # two before it: 15 s at 10 s a turn
        assert (first.has_turn, second.has_turn, hurried.has_turn) == (True, True, False)
        assert not any(task.done() for task in waiting)
        with pytest.raises(BusyError, match="5 being answered"):
            await gate.come(60)
        with pytest.raises(BusyError):
            gate.check()
        first.leave()
        second.leave()
        third, fourth = [await task for task in waiting]
        assert third.has_turn
        assert fourth.has_turn
        for visit in (third, fourth, hurried):
            visit.leave()
        assert gate.inside == 0
        assert gate._seconds < 10  # these turns were short
        again = [await gate.come(0), await gate.come(0), await gate.come(0)]
        assert [visit.has_turn for visit in again] == [True, True, False]

    asyncio.run(crowd())


def test_who_waits_too_long_goes_on_without_bert() -> None:
    """And leaves the turns as they were, as does one who goes away while waiting."""

    async def crowd() -> None:
        gate = Gate(Limits(at_work=1))
        first, second = await gate.come(1), await gate.come(0.01)
        assert (first.has_turn, second.has_turn) == (True, False)
        waiting = asyncio.create_task(gate.come(60))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert gate.inside == 2
        first.leave()
        assert (await gate.come(0.01)).has_turn
        assert not (await gate.come(None)).has_turn

    asyncio.run(crowd())


def test_a_crowd_gets_the_best_there_is_and_then_a_time_to_come_back(client: Any) -> None:
    """One is being read for, one waits; two get the first stage's hits; the fifth gets 503."""
    scorer = Held()
    service = client(Ranker(scorer), Limits(budget=15, at_work=1, inside=4))
    ask = {"query": "birch river"}
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(service.post, "/search", json=ask)
        assert scorer.asked.wait(10)
        second = pool.submit(service.post, "/search", json={"query": "iron"})
        while service.app.service.gate.inside < 2:
            pass
        service.app.service.gate._seconds = 60.0
        hurried = service.post("/search", json=ask).json()
        assert not hurried["exact"]
        assert not any(hit["settled"] for hit in hurried["hits"])
        plain = service.post("/search", json={**ask, "by": "first_stage"}).json()
        assert plain["exact"]
        assert [h["doc_id"] for h in hurried["hits"]] == [h["doc_id"] for h in plain["hits"]]
        service.app.service.gate.inside += 2  # as though two more were inside
        for path in ("/search", "/search/stream"):
            refused = service.post(path, json=ask)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
        assert service.get("/readyz").status_code == 503
        assert (
            service.post("/v2/rerank", json={"query": "a", "documents": ["b"]}).status_code == 503
        )
        assert service.get("/healthz").status_code == 200
        service.app.service.gate.inside -= 2
        scorer.go.set()
        assert first.result().json()["exact"]
        assert second.result().json()["exact"]
    assert service.app.service.gate.inside == 0


def test_what_breaks_one_search_leaves_the_others_alone(client: Any) -> None:
    """It is answered as an error, without what broke; the turn is given back."""

    class Broken(WordScorer):
        def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
            if query == "iron":
                raise RuntimeError("secret detail")
            return super().score(query, pieces)

    service = client(Ranker(Broken()), Limits(budget=5, at_work=1), raises=False)
    for _ in range(3):
        answer = service.post("/search", json={"query": "iron"})
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert service.post("/search", json={"query": "birch"}).json()["exact"]


def test_a_turn_lasts_as_long_as_its_search(client: Any) -> None:
    """Not longer, where nobody takes the answer; nor shorter, where whoever asked is gone."""
    scorer = Held()
    service = client(Ranker(scorer), Limits(budget=15, at_work=1)).app.service
    request = SearchRequest(query="birch river")

    async def idle() -> None:
        scorer.go.set()
        answers = service.stream(request)
        await anext(answers)
        await until(lambda: service.gate.inside == 0)  # though the stream is not read to its end
        await answers.aclose()

    async def gone() -> None:
        scorer.go.clear()
        scorer.asked.clear()
        task = asyncio.create_task(service.search(SearchRequest(query="iron")))
        await until(scorer.asked.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)
        assert service.gate.inside == 1
        scorer.go.set()
        await until(lambda: service.gate.inside == 0)

    async def until(holds: Any) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.005)

    asyncio.run(idle())
    service.gate = Gate(service.limits)  # of the next event loop
    asyncio.run(gone())


def test_a_search_ends_when_nobody_waits_for_it() -> None:
    """Who reads a stream and goes away leaves no thread at work; of many answers one waits."""
    ended = Event()

    def search(watch: Any) -> tuple[Answer, bool]:
        try:
            for _ in range(10_000):
                watch(lambda: Answer((), Work(exact=False)))
                Event().wait(0.001)
        except GoneError:
            ended.set()
            raise
        return Answer((), Work()), True

    async def leave() -> None:
        told = Told("q", 0.0, frames=True)
        with ThreadPoolExecutor(1) as pool:
            running = asyncio.wrap_future(pool.submit(told.run, search))
            answers = told.answers(running)
            await anext(answers)
            await answers.aclose()
            with pytest.raises(asyncio.CancelledError):  # what ended it is told to nobody
                await running

    asyncio.run(leave())
    assert ended.is_set()


def test_who_leaves_while_a_thread_is_waited_for_is_inside_no_more(client: Any) -> None:
    """And what the search would have ended with is lost to nobody's log."""
    service = client(Ranker(WordScorer())).app.service
    go, unheard = Event(), []

    async def leave() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: unheard.append(context))
        held = [service._quick.submit(go.wait, 20) for _ in range(QUICK_THREADS)]
        asked = SearchRequest(query="birch", by="first_stage", budget_ms=1)
        task = asyncio.create_task(service.search(asked))
        await asyncio.sleep(0.05)
        assert service.gate.inside == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)
        assert service.gate.inside == 0
        go.set()
        assert all(one.result() for one in held)
        await asyncio.sleep(0.05)

    asyncio.run(leave())
    gc.collect()
    assert not unheard


def test_of_many_answers_the_first_and_the_newest_are_told() -> None:
    """The first is the first stage's, however fast the rest comes."""

    def search(watch: Any) -> tuple[Answer, bool]:
        for count in range(1, 4):
            watch(lambda count=count: Answer((), Work(candidates=count, exact=False)))
            Event().wait(0.15)  # longer than a frame
        return Answer((), Work(candidates=9)), True

    async def late() -> list[int]:
        told = Told("q", 0.0, frames=True)
        with ThreadPoolExecutor(1) as pool:
            running = asyncio.wrap_future(pool.submit(told.run, search))
            await asyncio.wait([running])
            await asyncio.sleep(0.05)
            return [answer.candidates async for answer in told.answers(running)]

    assert asyncio.run(late()) == [1, 9]


def test_work_ends_when_whoever_asked_goes_away() -> None:
    """Its turn is for others; who stays has what it asked for."""

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
        assert await while_there(stays, work()) == 7
        with pytest.raises(HTTPException):
            await while_there(leaves, work())
        await asyncio.sleep(0)

    asyncio.run(both())
    assert ended == [True]


def test_reading_ends_when_nobody_waits_for_it(client: Any) -> None:
    """Texts that are ranked and a document that is read: at the next batch the turn is free."""

    class Slow(WordScorer):
        batches = 0

        def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
            self.batches += 1
            time.sleep(0.05)
            return super().score(query, pieces)

    scorer = Slow()
    service = client(Ranker(scorer), Limits(budget=20, longest=20)).app.service
    long = ". ".join(f"birch {n}" for n in range(4_000))
    service.searcher.add([Document("long", {"text": long})])

    async def leave(work: Any) -> int:
        service.gate, scorer.batches = Gate(service.limits), 0
        task = asyncio.create_task(work)
        async with asyncio.timeout(15):
            while scorer.batches < 2:
                await asyncio.sleep(0.005)
            task.cancel()
            while service.gate.inside:
                await asyncio.sleep(0.005)
        with pytest.raises(asyncio.CancelledError):
            await task
        return scorer.batches

    assert asyncio.run(leave(service.document("long", "birch"))) < 6
    assert asyncio.run(leave(service.rerank("birch", [long]))) < 6


def test_who_waited_too_long_for_a_thread_is_told_to_come_back(client: Any) -> None:
    """Answers of the first stage have an end as well."""
    service = client()
    go = Event()
    own = service.app.service
    held = [own._quick.submit(go.wait, 20) for _ in range(QUICK_THREADS)]
    with ThreadPoolExecutor(1) as pool:
        ask = {"query": "birch", "by": "first_stage", "budget_ms": 1}
        late = pool.submit(service.post, "/search", json=ask)
        while not own.gate.inside:
            time.sleep(0.01)
        time.sleep(2 * QUEUE)
        go.set()
        answer = late.result()
    assert all(one.result() for one in held)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert service.post("/search", json=ask).status_code == 200
    own.gate.inside += own.limits.inside
    assert service.post("/search", content=b"{").status_code == 503  # before a body is read
    own.gate.inside -= own.limits.inside


def test_what_can_never_be_read_in_time_is_too_much(client: Any) -> None:
    """Clients ask again what is answered by 503; this would hold a turn each time."""

    class Slow(WordScorer):
        meets: Barrier | None = None

        def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
            if self.meets:
                with suppress(BrokenBarrierError):
                    self.meets.wait(5)
            time.sleep(1.3)
            return super().score(query, pieces)

    scorer = Slow()
    service = client(Ranker(scorer), Limits(budget=1, longest=1, at_work=2))
    texts = [f"birch {n}" for n in range(200)]
    answer = service.post("/v2/rerank", json={"query": "birch", "documents": texts})
    assert answer.status_code == 413
    assert "retry-after" not in answer.headers
    assert answer.json()["wanted"] == "what can be read in 1 s"
    scorer.meets = Barrier(2)
    with ThreadPoolExecutor(2) as pool:  # each might have sufficed without the other
        asked = {"query": "birch", "documents": texts}
        both = [pool.submit(service.post, "/v2/rerank", json=asked) for _ in range(2)]
        assert {one.result().status_code for one in both} == {503}
