"""Who may come in, when more ask than can be served?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from birchbark.errors import BirchbarkError
from birchbark.serve.limits import Limits

RETRY_AFTER = 1  # seconds


class BusyError(BirchbarkError):
    """More is asked than can be answered in time."""


class Gate:
    """Lets so many to BERT, so many more wait; the next do without BERT; the rest are refused.

    Asked in one event loop.
    """

    def __init__(self, limits: Limits) -> None:
        self._most_waiting = limits.at_work + limits.waiting
        self._most = 2 * self._most_waiting
        self._turns = asyncio.Semaphore(limits.at_work)
        self.inside = 0

    @property
    def full(self) -> bool:
        """Whether the next one would be refused."""
        return self.inside >= self._most

    @asynccontextmanager
    async def entered(self, patience: float) -> AsyncIterator[bool]:
        """Inside, whether BERT may be asked: not where it is crowded, or no turn came in time.

        patience: seconds to wait for a turn. Raises BusyError where too many are inside.
        """
        if self.full:
            raise self.refusal()
        self.inside += 1
        has_turn = False
        try:
            if self.inside <= self._most_waiting:
                has_turn = await self._turn(patience)
            yield has_turn
        finally:
            self.inside -= 1
            if has_turn:
                self._turns.release()

    def refusal(self) -> BusyError:
        """The error for a request that is not taken in."""
        return BusyError(
            "too many requests at once",
            found=f"{self.inside} being answered",
            remedy=f"try again in {RETRY_AFTER} s",
        )

    async def _turn(self, patience: float) -> bool:
        try:
            await asyncio.wait_for(self._turns.acquire(), patience)
        except TimeoutError:
            return False
        return True
