"""How much can still be scored before time is up?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

BATCH_TOKENS = 4096  # what a kill can cost: a second of a small model, ten of BERT-base
FIRST_TOKENS = 64  # scored before anything is known of the model's speed
HURRIED_TOKENS = 512  # at most, under a deadline: what an error of the forecast can cost
CAUTION = 1.5  # a forecast is multiplied by this
RESERVE = 0.05  # share of the time that is kept for what comes after scoring

Clock = Callable[[], float]


class Deadline:
    """A point in time, and what can be scored before it, by the speed seen so far."""

    def __init__(
        self,
        budget: float | None,
        clock: Clock = time.monotonic,
        *,
        watch: Callable[[], object] = lambda: None,
    ) -> None:
        """budget: seconds from now; None for no deadline.

        watch: called before each batch; what it raises ends the scoring.
        """
        self._clock, self._watch = clock, watch
        self._end = math.inf if budget is None else clock() + budget * (1 - RESERVE)
        self._begun = 0.0
        self._seconds_a_token = 0.0

    @property
    def exists(self) -> bool:
        """Whether there is any."""
        return self._end < math.inf

    @property
    def passed(self) -> bool:
        """Whether time is up."""
        return self.exists and self._clock() >= self._end

    def allows(self, lengths: NDArray[np.intp]) -> int:
        """How many of the next inputs, of so many tokens each, to score now; 0 when time is up."""
        self._watch()
        self._begun = self._clock()
        left = self._end - self._begun
        if not self.exists:
            return _within(lengths, BATCH_TOKENS) or 1
        if left <= 0:
            return 0
        if not self._seconds_a_token:
            return _within(lengths, FIRST_TOKENS) or 1
        forecast = int(left / (self._seconds_a_token * CAUTION))
        return _within(lengths, min(HURRIED_TOKENS, forecast)) or int(lengths[0] <= forecast)

    def suffices(self, tokens: int) -> bool:
        """Whether so many tokens can be scored in time, as far as the speed is known."""
        left = self._end - self._clock()
        return not self.exists or left > self._seconds_a_token * CAUTION * tokens

    def scored(self, tokens: float) -> None:
        """So many tokens were scored since `allows` was asked; 0 tells nothing of the speed."""
        if self.exists and tokens:
            seconds = (self._clock() - self._begun) / tokens
            self._seconds_a_token = max(seconds, self._seconds_a_token / 2)


def _within(lengths: NDArray[np.intp], tokens: int) -> int:
    """How many of the first inputs have at most so many tokens together."""
    return int(np.searchsorted(np.cumsum(lengths[: tokens + 1]), tokens, side="right"))
