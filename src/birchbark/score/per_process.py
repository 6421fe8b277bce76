"""How does what has threads work in a process that was forked? Threads do not survive a fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """A value that is made anew when it is first used in a forked process."""

    def __init__(self, make: Callable[[], T]) -> None:
        """Make the value of this process."""
        self._make = make
        self._made = os.getpid(), make()

    def get(self) -> T:
        """Return the value of this process."""
        process, value = self._made
        if process != os.getpid():
            value = self._make()
            self._made = os.getpid(), value
        return value
