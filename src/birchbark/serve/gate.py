"""Who may come in, when more ask than can be served?"""

from __future__ import annotations

import asyncio
import time

from birchbark.errors import BirchbarkError
from birchbark.serve.limits import Limits

RETRY_AFTER = 1  # seconds
RECENT = 0.2  # what the last turn counts in how long turns take


class BusyError(BirchbarkError):
    """More is asked than can be answered in time."""


class Gate:
    """Lets so many to BERT; as many wait as can hope for a turn; the next do without; then no more.

    Asked in one event loop.
    """

    def __init__(self, limits: Limits) -> None:
        self._at_work, self._most = limits.at_work, limits.inside
        self._turns = asyncio.Semaphore(limits.at_work)
        self._seconds = 0.0  # that a turn takes, of late
        self._waiting = 0
        self._visits: set[Visit] = set()  # those with a turn
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
        where so many wait that none is to be hoped for in time, or where none came.
        """
        self.check()
        self.inside += 1
        has_turn = False
        try:
            if patience is not None and self._wait() <= patience:
                has_turn = await self._turn(patience)
        except BaseException:
            self.inside -= 1
            raise
        visit = Visit(self, has_turn)
        if has_turn:
            self._visits.add(visit)
            if len(self._visits) > 1:
                for one in self._visits:
                    one.alone = False
        return visit

    def _wait(self) -> float:
        """Seconds until the next one to come has a turn, as turns go of late."""
        if not self._turns.locked():
            return 0.0
        return (self._waiting + 1) * self._seconds / self._at_work

    async def _turn(self, patience: float) -> bool:
        self._waiting += 1
        try:
            async with asyncio.timeout(patience):
                return await self._turns.acquire()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1

    def left(self, visit: Visit) -> None:
        """One goes."""
        self.inside -= 1
        if visit.has_turn:
            self._visits.remove(visit)
            self._seconds += RECENT * (time.monotonic() - visit.begun - self._seconds)
            self._turns.release()


class Visit:
    """One who is inside. has_turn: whether BERT may be asked. begun: when, by monotonic clock.

    alone: whether no other had a turn meanwhile.
    """

    def __init__(self, gate: Gate, has_turn: bool) -> None:
        self._gate, self.has_turn = gate, has_turn
        self.alone = True
        self.begun = time.monotonic()

    def leave(self) -> None:
        """Go, once, when nothing is done for this one any more."""
        self._gate.left(self)
