"""Under load, which requests may score with BERT, which wait, and which are refused?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from birchbark.errors import BirchbarkError
from birchbark.serve.limits import Limits

T = TypeVar("T")
RETRY_AFTER = 1  # seconds
SMOOTHING = 0.2  # weight of the latest scoring time in the moving average


class BusyError(BirchbarkError):
    """The service is overloaded, or has nothing to search yet."""


class AdmissionControl:
    """Limits concurrent requests and, among them, those that score with BERT.

    At most `max_concurrent` requests score at a time. Further requests wait for a scoring slot, or
    continue without one if the estimated wait is too long. Requests beyond `max_requests` are
    refused. A request whose client has gone is not counted: its slot is free before the next batch,
    so that one person who sends search after search never waits for his own. Scoring
    slots are acquired, abandoned and released in one event loop.
    """

    def __init__(self, limits: Limits) -> None:
        self._max_concurrent, self._max_requests = limits.max_concurrent, limits.max_requests
        self._semaphore = asyncio.Semaphore(limits.max_concurrent)
        self._mean_seconds = 0.0  # moving average of the time for which a scoring slot is held
        self._waiting = 0
        self._scoring: set[Slot] = set()
        self._abandoned: set[Slot] = set()  # those of `_scoring` that nobody waits for
        self.active = 0  # requests being answered

    def check(self) -> None:
        """Raise BusyError if the next request would be refused."""
        if self.active >= self._max_requests:
            raise self.busy_error()

    def busy_error(self) -> BusyError:
        """Return the error for a refused request."""
        return BusyError(
            "too many requests at once",
            found=f"{self.active} being answered",
            remedy=f"try again in {RETRY_AFTER} s",
        )

    def fair_share(self, seconds: float) -> float:
        """Return how long each of the active requests may score if all are to end within `seconds`.

        This is `seconds` itself while there are no more requests than scoring slots.
        """
        active = self.active - len(self._abandoned)
        return seconds * min(1.0, self._max_concurrent / max(1, active))

    @asynccontextmanager
    async def slot(self, max_wait: float | None) -> AsyncIterator[Slot]:
        """Admit a request, for which nobody waits after the block.

        Its slot is released when the work that it was given ends, or after the block if it was
        given none. max_wait: see `acquire`, whose errors are raised.
        """
        slot = await self.acquire(max_wait)
        try:
            yield slot
        finally:
            if slot.has_work:
                self._abandon(slot)
            else:
                slot.release()

    async def acquire(self, max_wait: float | None) -> Slot:
        """Admit a request; the caller must release its slot by `Slot.release`.

        max_wait: maximum number of seconds to wait for permission to score; None if the request
        does not score. Permission is denied at once if the estimated wait is longer, and otherwise
        after `max_wait` seconds. Raises BusyError if too many requests are active.
        """
        self.check()
        self.active += 1
        may_score = False
        try:
            if max_wait is not None and self._estimated_wait() <= max_wait:
                may_score = await self._wait_to_score(max_wait)
        except BaseException:
            self.active -= 1
            raise
        slot = Slot(self, may_score)
        if may_score:
            self._scoring.add(slot)
            if len(self._scoring) > 1:
                for concurrent in self._scoring:
                    concurrent.exclusive = False
        return slot

    def _estimated_wait(self) -> float:
        """Return how many seconds the next request would wait, given recent scoring times."""
        if not self._semaphore.locked():
            return 0.0
        ahead = max(0, self._waiting + 1 - len(self._abandoned))
        return ahead * self._mean_seconds / self._max_concurrent

    async def _wait_to_score(self, max_wait: float) -> bool:
        self._waiting += 1
        try:
            async with asyncio.timeout(max_wait):
                return await self._semaphore.acquire()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1

    def _abandon(self, slot: Slot) -> None:
        """Note that nobody waits for a request; its slot may have been released."""
        if slot in self._scoring:
            self._abandoned.add(slot)

    def release(self, slot: Slot) -> None:
        """Release the slot of a request that has ended."""
        self.active -= 1
        if slot.may_score:
            self._scoring.remove(slot)
            self._abandoned.discard(slot)
            seconds = time.monotonic() - slot.start
            self._mean_seconds += SMOOTHING * (seconds - self._mean_seconds)
            self._semaphore.release()


class Slot:
    """An admitted request.

    may_score: whether the request may score with BERT. exclusive: false if another request was
    permitted to score at the same time. start: the time of admission on the monotonic clock.
    has_work: whether it was given work, which releases it.
    """

    def __init__(self, admission: AdmissionControl, may_score: bool) -> None:
        self._admission, self.may_score = admission, may_score
        self.exclusive, self.has_work = True, False
        self.start = time.monotonic()

    def submit(self, pool: Executor, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` in a thread; release the slot when it ends, even if nothing awaits it."""
        loop = asyncio.get_running_loop()
        running = pool.submit(work)
        self.has_work = True

        def release(running: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.release)

        running.add_done_callback(release)
        return asyncio.wrap_future(running)

    def release(self) -> None:
        """Release the slot; call this once, after all work for the request has ended."""
        self._admission.release(self)
