"""How much can still be scored before the time budget runs out?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import DeadlineError, InputError, require_number

TOKENS_AT_ONCE = 4096  # 1 s of MiniLM, 10 s of BERT-base: the work lost when a process is killed
FIRST_TOKENS = 64  # size of the first batch, which measures the speed
DEADLINE_TOKENS_AT_ONCE = 512  # batch size under a deadline: limits the cost of a wrong estimate
SAFETY_FACTOR = 1.5  # estimates are multiplied by this
RESERVE = 0.05  # share of the budget reserved for the work after scoring

Clock = Callable[[], float]

NO_TIME = 1e-9  # seconds: a search uses stored vectors but reads no segment


class Deadline:
    """A deadline for scoring, with an estimate of how many tokens can be scored before it.

    The estimate is based on the speed measured so far.
    """

    def __init__(
        self,
        budget: float | None,
        clock: Clock = time.monotonic,
        *,
        on_batch: Callable[[], object] = lambda: None,
    ) -> None:
        """budget: seconds from now; None for no deadline. InputError unless it is a number.

        on_batch: called before each batch; an exception that it raises ends the scoring.
        """
        if budget is not None:
            require_number("budget", budget)
            if math.isnan(budget):
                raise InputError("budget is out of range", wanted="seconds", found=str(budget))
        self._clock, self.on_batch = clock, on_batch
        self._end = math.inf if budget is None else clock() + budget * (1 - RESERVE)
        self._batch_start = 0.0
        self._seconds_per_token = 0.0

    @property
    def exists(self) -> bool:
        """Whether there is a deadline."""
        return self._end < math.inf

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self.exists and self._clock() >= self._end

    @property
    def remaining(self) -> float:
        """The number of seconds left, 0 or more; infinity without a deadline."""
        return max(0.0, self._end - self._clock()) if self.exists else math.inf

    def check(self, what: str) -> None:
        """Call `on_batch`; raise DeadlineError if the time is up. what: is not complete then."""
        self.on_batch()
        if self.passed:
            raise DeadlineError(f"time does not suffice for {what}", remedy="a shorter query")

    def part(self, share: float) -> Deadline:
        """Return a deadline after this share of the remaining time; it measures its own speed."""
        if not self.exists:
            return self
        now = self._clock()
        budget = share * max(0.0, self._end - now) / (1 - RESERVE)
        return Deadline(budget, self._clock, on_batch=self.on_batch)

    def next_batch(self, lengths: NDArray[np.intp]) -> int:
        """Return how many of the next inputs to score now; 0 if not even the first is in time.

        lengths: the number of tokens of each input.
        """
        self.on_batch()
        self._batch_start = self._clock()
        remaining = self._end - self._batch_start
        if not self.exists:
            return _count_within(lengths, TOKENS_AT_ONCE) or 1
        if remaining <= 0:
            return 0
        if not self._seconds_per_token:
            return _count_within(lengths, FIRST_TOKENS) or 1
        tokens = int(remaining / (self._seconds_per_token * SAFETY_FACTOR))
        limit = min(DEADLINE_TOKENS_AT_ONCE, tokens)
        return _count_within(lengths, limit) or int(lengths[0] <= tokens)

    def allows(self, tokens: int) -> bool:
        """Whether this many tokens can be scored in time; true while the speed is unknown."""
        remaining = self._end - self._clock()
        return not self.exists or remaining > self._seconds_per_token * SAFETY_FACTOR * tokens

    def record(self, tokens: float) -> None:
        """Update the measured speed.

        tokens: number of tokens scored since the last call of `next_batch`; 0 is ignored.
        """
        if self.exists and tokens:
            seconds = (self._clock() - self._batch_start) / tokens
            self._seconds_per_token = max(seconds, self._seconds_per_token / 2)


def _count_within(lengths: NDArray[np.intp], tokens: int) -> int:
    """Return the largest number of leading inputs that have at most `tokens` tokens in total."""
    return int(np.searchsorted(np.cumsum(lengths[: tokens + 1]), tokens, side="right"))
