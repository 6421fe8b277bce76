"""How do a search's answers get from its thread to the event loop, which sends them?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from typing import Protocol

from birchbark.pipeline.answers.answer import Answer
from birchbark.pipeline.answers.search_notes import probably_unanswered
from birchbark.pipeline.answers.sort_hits import sorted_by_field
from birchbark.pipeline.search import OnProgress
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.retrieve.query_language import ParsedQuery
from birchbark.serve.schemas import SearchResponse, Timings
from birchbark.serve.serialize import serialize_answer

MIN_INTERVAL = 0.1  # seconds between two answers, after the first one with all evidence


class DisconnectedError(Exception):
    """The client has disconnected, so the search must end."""


class Search(Protocol):
    """A function that runs a search."""

    def __call__(self, *, on_progress: OnProgress) -> Answer:
        """Return the final answer."""
        ...


class AnswerStream:
    """The answers of one search.

    The first answer is always yielded. After it, a newer answer replaces one not yet yielded. The
    first answer in which every hit has evidence is not delayed.

    query: what is searched for. rankers: the stages of the search, which must be set before it
    begins; none by default.
    """

    def __init__(
        self,
        query: ParsedQuery,
        start: float,
        *,
        sort: str | None = None,
        keywords: Collection[str] = (),
        intermediate: bool,
    ) -> None:
        """Must be called in the event loop.

        sort: the order of the hits in each answer (see `sorted_by_field`); None for the best first.
        keywords: the keyword fields of the index.
        start: the time of the request on the monotonic clock. intermediate: whether to yield
        answers before the final one.
        """
        self.query, self._start, self._sort, self._intermediate = query, start, sort, intermediate
        self._keywords, self._seconds_waited = keywords, 0.0
        self._loop, self._changed = asyncio.get_running_loop(), asyncio.Event()
        self._unsent: list[SearchResponse] = []
        self._first_answer: SearchResponse | None = None
        self._first_stage_seconds: float | None = None
        self._next_answer_time = 0.0
        self._all_have_evidence = False  # in an answer sent before
        self.rankers: Sequence[Ranker] = ()
        self._ended = self._disconnected = False

    def run(self, search: Search) -> None:
        """Run the search; call this in a thread. It ends early if the client disconnects."""
        self._seconds_waited = time.monotonic() - self._start
        try:
            with suppress(DisconnectedError):
                answer = search(on_progress=self._on_progress)
                self._send(self._response(answer, complete=True))
        finally:
            self._send(None)

    async def answers(self, running: asyncio.Future[None]) -> AsyncIterator[SearchResponse]:
        """Yield the answers, the final one last; raise the search's exception if it fails.

        running: the future of the thread that executes `run`.
        """
        try:
            while not self._ended or self._unsent:
                await self._changed.wait()
                self._changed.clear()
                while self._unsent:
                    yield self._unsent.pop(0)
            await running
        finally:
            self._disconnected = True
            running.cancel()  # has an effect only if it has not started

    def _on_progress(self, answer: Callable[[], Answer]) -> None:
        if self._disconnected:
            raise DisconnectedError
        now = time.monotonic()
        if self._first_stage_seconds is None:
            self._first_stage_seconds = now - self._start
        due = now >= self._next_answer_time
        if not self._intermediate or (self._all_have_evidence and not due):
            return
        current = answer()
        complete = all(hit.segments for hit in current.hits)
        if due or complete:
            self._all_have_evidence |= complete
            self._next_answer_time = time.monotonic() + MIN_INTERVAL
            self._send(self._response(current, complete=False))

    def _send(self, answer: SearchResponse | None) -> None:
        """Pass an answer to the event loop; None at the end of the search."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._receive, answer)

    def _receive(self, answer: SearchResponse | None) -> None:
        if answer is None:
            self._ended = True
        elif self._unsent and self._unsent[-1] is not self._first_answer:
            self._unsent[-1] = answer
        else:
            self._first_answer = self._first_answer or answer
            self._unsent.append(answer)
        self._changed.set()

    def _response(self, answer: Answer, *, complete: bool) -> SearchResponse:
        """complete: whether it is the final answer."""
        total = time.monotonic() - self._start
        first_stage = total if self._first_stage_seconds is None else self._first_stage_seconds
        timings = Timings(
            waited=_milliseconds(self._seconds_waited),
            first_stage=_milliseconds(first_stage),
            total=_milliseconds(total),
        )
        unanswered = probably_unanswered(answer)
        if self._sort:
            answer = sorted_by_field(answer, self._sort, self._keywords, complete=complete)
        return serialize_answer(answer, self.query, self.rankers, timings, unanswered=unanswered)


def _milliseconds(seconds: float) -> float:
    return round(1000 * seconds, 1)
