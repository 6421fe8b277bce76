"""How does a search that runs in a thread tell those who wait for it in the event loop?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Protocol

from birchbark.pipeline.answer import Answer
from birchbark.pipeline.search import Watch
from birchbark.serve.shapes import SearchAnswer, Timings
from birchbark.serve.shown import hit_shape

FRAME = 0.1  # seconds between two answers, at least


class GoneError(Exception):
    """Whoever asked is no longer there: the search ends."""


class Search(Protocol):
    """A search that waits to be begun."""

    def __call__(self, *, watch: Watch) -> Answer:
        """See `Searcher.search`."""
        ...


class Told:
    """What is told of one search."""

    def __init__(
        self, query: str, begun: float, waited: float, *, frames: bool, cut_short: bool
    ) -> None:
        """begun: when it was asked for, by the monotonic clock. waited: seconds, for a turn.

        frames: whether answers are told before the last one. cut_short: the search leaves out what
        was asked for, so no answer is exact.
        """
        self._query, self._begun, self._waited = query, begun, waited
        self._frames, self._cut_short = frames, cut_short
        self._first: float | None = None
        self._next = 0.0
        self._gone = False

    async def of(self, threads: Executor, search: Search) -> AsyncIterator[SearchAnswer]:
        """Answers of `search`, which runs in one of `threads`; the last is its own."""
        loop = asyncio.get_running_loop()
        found = asyncio.Queue[SearchAnswer | None]()

        def tell(answer: SearchAnswer | None) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(found.put_nowait, answer)

        def watch(answer: Callable[[], Answer]) -> None:
            if self._gone:
                raise GoneError
            if self._due():
                tell(self._shape(answer()))

        def run() -> None:
            try:
                tell(self._shape(search(watch=watch)))
            finally:
                tell(None)

        task = loop.run_in_executor(threads, run)
        try:
            while (answer := await found.get()) is not None:
                yield answer
            await task
        finally:
            self._gone = True
            with suppress(GoneError):
                await asyncio.shield(task)

    def _due(self) -> bool:
        """Whether an answer may be told now."""
        now = time.monotonic()
        if self._first is None:
            self._first = now - self._begun
        if not self._frames or now < self._next:
            return False
        self._next = now + FRAME
        return True

    def _shape(self, answer: Answer) -> SearchAnswer:
        total = time.monotonic() - self._begun
        first = total if self._first is None else self._first
        hits = [hit_shape(hit) for hit in answer.hits]
        if self._cut_short:
            hits = [hit.model_copy(update={"settled": False}) for hit in hits]
        return SearchAnswer(
            query=self._query,
            hits=hits,
            exact=answer.work.exact and not self._cut_short,
            candidates=answer.work.candidates,
            settled=answer.work.settled,
            pairs=answer.work.pairs,
            timings_ms=Timings(waited=_ms(self._waited), first_stage=_ms(first), total=_ms(total)),
        )


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
