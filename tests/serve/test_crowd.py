"""What do people get when more of them ask than can be served?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from served import client, place

from birchbark.pipeline.ranker import Ranker
from birchbark.records import Float32s, Ids
from birchbark.serve.gate import BusyError, Gate
from birchbark.serve.limits import Limits
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
    """Two at work, one waits, three are sent on without BERT, the next is refused."""

    async def crowd() -> None:
        gate, leave = Gate(Limits(at_work=2, waiting=1)), asyncio.Event()
        found: list[Any] = []

        async def come(patience: float) -> None:
            async with gate.entered(patience) as has_turn:
                found.append(has_turn)
                await leave.wait()

        tasks = [asyncio.create_task(come(60)) for _ in range(6)]
        await asyncio.sleep(0.05)
        assert sorted(found) == [False, False, False, True, True]  # one still waits
        assert gate.full
        with pytest.raises(BusyError, match="6 being answered"):
            async with gate.entered(60):
                pass
        leave.set()
        await asyncio.gather(*tasks)
        assert sorted(found) == [False, False, False, True, True, True]
        assert gate.inside == 0
        async with gate.entered(0.01) as has_turn:
            assert has_turn

    asyncio.run(crowd())


def test_who_waits_too_long_goes_on_without_bert() -> None:
    """And leaves the turns as they were, as does one who goes away while waiting."""

    async def crowd() -> None:
        gate = Gate(Limits(at_work=1, waiting=5))
        async with gate.entered(1) as first:
            async with gate.entered(0.01) as second:
                assert (first, second) == (True, False)
            waiting = asyncio.create_task(gate.entered(60).__aenter__())
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert gate.inside == 1
        async with gate.entered(0.01) as next_one:
            assert next_one

    asyncio.run(crowd())


def test_a_crowd_gets_the_best_there_is_and_then_a_time_to_come_back(client: Any) -> None:
    """One is being read for, one waits; two get the first stage's hits; the fifth gets 503."""
    scorer = Held()
    service = client(Ranker(scorer), Limits(budget=15, at_work=1, waiting=1))
    ask = {"query": "birch river"}
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(service.post, "/search", json=ask)
        assert scorer.asked.wait(10)
        second = pool.submit(service.post, "/search", json={"query": "iron"})
        while service.app.service.gate.inside < 2:
            pass
        hurried = service.post("/search", json=ask).json()
        assert not hurried["exact"]
        assert not any(hit["settled"] for hit in hurried["hits"])
        plain = service.post("/search", json={**ask, "by": "first_stage"}).json()
        assert plain["exact"]
        assert [h["doc_id"] for h in hurried["hits"]] == [h["doc_id"] for h in plain["hits"]]
        service.app.service.gate.inside += 2  # as though two more were inside
        refused = service.post("/search", json=ask)
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

    service = client(Ranker(Broken()), Limits(budget=5, at_work=1, waiting=0), raises=False)
    for _ in range(3):
        answer = service.post("/search", json={"query": "iron"})
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert service.post("/search", json={"query": "birch"}).json()["exact"]


def test_a_search_ends_when_nobody_waits_for_it() -> None:
    """Who reads a stream and goes away leaves no thread at work."""
    from birchbark.pipeline.answer import Answer, Work
    from birchbark.serve.told import GoneError, Told

    async def leave() -> list[str]:
        ended: list[str] = []

        def search(watch: Any) -> Answer:
            try:
                for _ in range(10_000):
                    watch(lambda: Answer((), Work(exact=False)))
                    Event().wait(0.001)
            except GoneError:
                ended.append("gone")
                raise
            return Answer((), Work())

        with ThreadPoolExecutor(1) as pool:
            told = Told("q", 0.0, 0.0, frames=True, cut_short=False)
            answers = told.of(pool, search)
            await anext(answers)
            await answers.aclose()
        return ended

    assert asyncio.run(leave()) == ["gone"]
