"""How does a search that runs in a thread tell those who wait for it in the event loop?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
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

    def __call__(self, *, watch: Watch) -> tuple[Answer, bool]:
        """See `Searcher.search`; and whether all that was asked for could be begun."""
        ...


class Told:
    """What is told of one search: the first answer, and of others the newest not taken yet."""

    def __init__(self, query: str, begun: float, *, frames: bool) -> None:
        """begun: when it was asked for, by the monotonic clock.

        frames: whether answers are told before the last one. Made in the event loop.
        """
        self._query, self._begun, self._frames = query, begun, frames
        self._waited = 0.0
        self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        self._untaken: list[SearchAnswer] = []
        self._start: SearchAnswer | None = None
        self._first: float | None = None
        self._next = 0.0
        self._ended = self._gone = False

    def run(self, search: Search) -> None:
        """Search, in a thread; ends early where nobody waits any more."""
        self._waited = time.monotonic() - self._begun
        try:
            with suppress(GoneError):
                self._tell(self._shape(*search(watch=self._watch)))
        finally:
            self._tell(None)

    async def answers(self, running: asyncio.Future[None]) -> AsyncIterator[SearchAnswer]:
        """Better and better answers of the search, the last its own; what it raises is raised.

        running: `run`, in a thread.
        """
        try:
            while not self._ended or self._untaken:
                await self._news.wait()
                self._news.clear()
                while self._untaken:
                    yield self._untaken.pop(0)
            await running
        finally:
            self._gone = True
            running.cancel()  # where it waits for a thread still

    def _watch(self, answer: Callable[[], Answer]) -> None:
        if self._gone:
            raise GoneError
        now = time.monotonic()
        if self._first is None:
            self._first = now - self._begun
        if self._frames and now >= self._next:
            self._next = now + FRAME
            self._tell(self._shape(answer(), begun=True))

    def _tell(self, answer: SearchAnswer | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._told, answer)

    def _told(self, answer: SearchAnswer | None) -> None:
        if answer is None:
            self._ended = True
        elif self._untaken and self._untaken[-1] is not self._start:
            self._untaken[-1] = answer
        else:
            self._start = self._start or answer
            self._untaken.append(answer)
        self._news.set()

    def _shape(self, answer: Answer, begun: bool) -> SearchAnswer:
        """begun: whether BERT was asked where it should be; hits are unread where it was not."""
        total = time.monotonic() - self._begun
        first = total if self._first is None else self._first
        hits = [hit_shape(hit) for hit in answer.hits]
        if not begun:
            hits = [hit.model_copy(update={"settled": False}) for hit in hits]
        return SearchAnswer(
            query=self._query,
            hits=hits,
            exact=answer.work.exact and begun,
            candidates=answer.work.candidates,
            settled=answer.work.settled,
            pairs=answer.work.pairs,
            timings_ms=Timings(waited=_ms(self._waited), first_stage=_ms(first), total=_ms(total)),
        )


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
