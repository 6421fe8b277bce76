"""How does the time of a call grow with its input? In processor time, whatever else is running."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

NOTABLE_SECONDS = 0.001  # what takes less for the short input is not measured again
FASTER_THAN_SQUARE = 9.0  # ratio of times for four times the length; 4 if linear, 16 if quadratic
ATTEMPTS = 6


def growth(call: Callable[[Any], object], short: Any, long: Any) -> float:
    """Return how many times longer `call` takes for `long`, four times the length of `short`.

    The least of several attempts, since a busy machine is slower at times; 0 if even the short
    input takes next to nothing.
    """
    if seconds(call, short, 1) < NOTABLE_SECONDS:
        return 0.0
    least = math.inf
    for _ in range(ATTEMPTS):
        least = min(least, seconds(call, long, 3) / max(seconds(call, short, 3), 1e-9))
        if least < FASTER_THAN_SQUARE:
            break
    return least


def seconds(call: Callable[[Any], object], given: Any, times: int) -> float:
    """Return the least processor time of several calls."""
    taken = []
    for _ in range(times):
        start = time.thread_time()
        call(given)
        taken.append(time.thread_time() - start)
    return min(taken)
