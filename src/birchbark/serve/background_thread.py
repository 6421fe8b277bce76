"""How does a service repeat work in a thread of its own, whatever fails, until it ends?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Event, Thread

from birchbark.errors import BirchbarkError

MAX_RETRY_SECONDS = 60.0
REPORTED_FAILURES = 3  # in succession; fewer are normal while another process writes


class _StoppedError(Exception):
    """The service is ending."""


class BackgroundThread(ABC):
    """Repeats work in a thread. Errors are reported, and the work is tried again."""

    def __init__(self, name: str, failure: str, report: Callable[[str], object]) -> None:
        """name: of the thread. failure: what an error means. report: called with messages."""
        self._failure, self._report = failure, report
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._reported = ""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, which drops work that it has not stored, and wait for its end."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    @abstractmethod
    def _work(self) -> float:
        """Do what is to be done, and return the seconds until it is repeated."""

    def _run(self) -> None:
        failures = 0
        while True:
            try:
                seconds = self._work()
                failures = 0
                self._wait(seconds)
            except _StoppedError:
                return
            except (BirchbarkError, OSError) as error:
                failures += 1
                if failures >= REPORTED_FAILURES:
                    self._report_once(f"{self._failure}: {error}")
                self._stopping.wait(min(2.0 ** min(failures - 1, 10), MAX_RETRY_SECONDS))

    def _wait(self, seconds: float) -> None:
        """Wait; an exception ends the thread when the service ends."""
        if self._stopping.wait(seconds):
            raise _StoppedError

    def _report_once(self, message: str) -> None:
        if message != self._reported:
            self._report(message)
        self._reported = message
