"""How is progress told where standard error is not a terminal, for example in a log file?"""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST, EVERY = 10.0, 60.0  # seconds until the first line, and between lines


class ProgressLines:
    """Writes a line with the progress and an estimate after ten seconds, and then every minute.

    It can be called like the function that advances a progress bar.
    """

    def __init__(
        self,
        label: str,
        total: int | None,
        write: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._total, self._write, self._clock = label, total, write, clock
        self._done = 0
        self._since: tuple[int, float] | None = None  # the first steps of this run, and their time
        self._next = clock() + FIRST

    def __call__(self, steps: int, *, total: int | None = None, label: str | None = None) -> None:
        """Advance by `steps`; `total` and `label`, if given, replace those from before."""
        if total is not None and total != self._total:  # another part of the work
            self._total, self._since = total, None
        self._done += steps
        self._label = label or self._label
        now = self._clock()
        self._since = self._since or (self._done, now)
        if now >= self._next:
            self._next = now + EVERY
            self._write(self._line(now))

    def _line(self, now: float) -> str:
        text = f"{self._label}: {self._done:,}"
        if self._total:
            text += f" of {self._total:,}"
        first, since = self._since or (self._done, now)
        if self._total and self._done > first:
            left = (now - since) / (self._done - first) * (self._total - self._done)
            text += f", about {in_words(left)} left"
        return text


def in_words(seconds: float) -> str:
    """Return a duration for people: "40 s", "12 min" or "3 h 20 min"."""
    if seconds < 90:
        return f"{round(seconds)} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
