"""Who may come in, when more ask than can be served?"""

from __future__ import annotations

import asyncio

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
        self._most = limits.inside
        self._turns = asyncio.Semaphore(limits.at_work)
        self.inside = 0

    def check(self) -> None:
        """Raise BusyError where the next one would be refused."""
        if self.inside >= self._most:
            raise self.refusal()

    def refusal(self) -> BusyError:
        """The error for a request that is not taken in."""
        return BusyError(
            "too many requests at once",
            found=f"{self.inside} being answered",
            remedy=f"try again in {RETRY_AFTER} s",
        )

    async def come(self, patience: float | None) -> Visit:
        """Come in, to leave by `Visit.leave`. Raises BusyError where too many are inside.

        patience: seconds to wait for a turn with BERT, None where none is wanted. No turn is had
        where it is crowded, or none came in time.
        """
        self.check()
        self.inside += 1
        has_turn = False
        try:
            if patience is not None and self.inside <= self._most_waiting:
                has_turn = await self._turn(patience)
        except BaseException:
            self.inside -= 1
            raise
        return Visit(self, has_turn)

    async def _turn(self, patience: float) -> bool:
        try:
            async with asyncio.timeout(patience):
                return await self._turns.acquire()
        except TimeoutError:
            return False

    def left(self, visit: Visit) -> None:
        """One goes."""
        self.inside -= 1
        if visit.has_turn:
            self._turns.release()


class Visit:
    """One who is inside. has_turn: whether BERT may be asked."""

    def __init__(self, gate: Gate, has_turn: bool) -> None:
        self._gate, self.has_turn = gate, has_turn

    def leave(self) -> None:
        """Go, once, when nothing is done for this one any more."""
        self._gate.left(self)
