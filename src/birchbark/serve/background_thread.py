"""How does a service repeat work in a thread of its own, whatever fails, until it ends?"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from birchbark.errors import BirchbarkError

LOG = logging.getLogger("birchbark.serve")
MAX_RETRY_SECONDS = 60.0
STOP_SECONDS = 2.0  # about as long as programs that run an agent's server wait for its end
REPORTED_FAILURES = 3  # in succession; fewer are normal while another process writes


class _StoppedError(Exception):
    """The service is ending."""


class BackgroundThread(ABC):
    """Repeats work in a thread. Whatever it raises is reported, and the work is tried again.

    Attributes:
        name: What the work is, in one word.
        failures: Number of failures in succession; 0 while the work succeeds.
        failing: What the last of several failures in succession means, and its reason, without
            paths; empty while the work succeeds.
    """

    def __init__(self, name: str, failure: str, report: Callable[[str], object]) -> None:
        """failure: what an error means. report: called with messages."""
        self.name, self.failures, self.failing = name, 0, ""
        self._failure, self._report = failure, report
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=f"birchbark-{name}", daemon=True)
        self._reported = ""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, which drops work that it has not stored, and wait for its end.

        It is not waited for longer than STOP_SECONDS, such as while a file is read that takes
        minutes: it then ends with the process.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    @abstractmethod
    def _work(self) -> float:
        """Do what is to be done, and return the seconds until it is repeated."""

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                seconds = self._work()
                self._succeeded()
            except _StoppedError:
                return
            except BaseException as error:  # compiled libraries raise others than Exception
                seconds = self._failed(error)
            self._stopping.wait(seconds)

    def _succeeded(self) -> None:
        """Note that the work, or a part that was to be tried again, has succeeded."""
        self.failures, self.failing = 0, ""

    def _failed(self, error: BaseException) -> float:
        """Note a failure, and return the seconds until the work is tried again."""
        self.failures += 1
        if self.failures >= REPORTED_FAILURES:
            self.failing = f"{self._failure}: {_reason(error)}"
            with suppress(Exception):  # nobody may read the messages any more
                self._report_failure(error)
        return min(2.0 ** min(self.failures - 1, 10), MAX_RETRY_SECONDS)

    def _report_failure(self, error: BaseException) -> None:
        expected = isinstance(error, (BirchbarkError, OSError))
        message = f"{self._failure}: {error if expected else repr(error)}"
        if message != self._reported and not expected:
            LOG.error("%s", self._failure, exc_info=error)
        self._report_once(message)

    def _wait(self, seconds: float) -> None:
        """Wait; an exception ends the thread when the service ends."""
        if self._stopping.wait(seconds):
            raise _StoppedError

    def _report_once(self, message: str) -> None:
        if message != self._reported:
            self._report(message)
        self._reported = message


def _reason(error: BaseException) -> str:
    """Return what went wrong, without the files that it concerns."""
    if isinstance(error, BirchbarkError):
        return error.what
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__
