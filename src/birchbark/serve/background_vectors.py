"""When does a service compute the vectors that its index lacks? While no request is active."""

from __future__ import annotations

import time
from collections.abc import Callable

from birchbark.pipeline.missing_vectors import SLICE_DOCUMENTS, MissingVectors
from birchbark.pipeline.searcher import Searcher
from birchbark.serve.background_thread import BackgroundThread
from birchbark.show.plural import plural

QUIET_SECONDS = 0.2  # without a request, before computing goes on
POLL_SECONDS = 0.01  # between two looks for active requests
WATCH_SECONDS = 1.0  # between two looks for new documents
OTHER_VECTORS = "no vectors are computed: the index has those of another model or other segments"


class BackgroundVectors(BackgroundThread):
    """Computes the vectors that a searcher's index lacks, in a thread of its own.

    The thread pauses before the next batch when a request arrives. It continues with documents that
    are added later.

    Attributes:
        missing: Number of documents that lacked vectors at the last look.
    """

    def __init__(self, vectors: MissingVectors, report: Callable[[str], object]) -> None:
        """report: called with messages, in the thread."""
        failure = "vectors cannot be computed, but searches work"
        super().__init__("vectors", failure, report)
        self._vectors = vectors
        self._active: Callable[[], int] = lambda: 0
        self._start: float | None = None  # of computing, since all documents had vectors
        self._computed = 0  # documents, since then
        self.missing = 0

    @classmethod
    def of(cls, searcher: Searcher, report: Callable[[str], object]) -> BackgroundVectors | None:
        """Return the thread for a searcher; None if none of its rankers uses vectors."""
        vectors = MissingVectors.of(searcher)
        return cls(vectors, report) if vectors else None

    @property
    def set_name(self) -> str | None:
        """The set of vectors that is completed; None if the index has other vectors."""
        return self._vectors.set_name

    def start_beside(self, active: Callable[[], int]) -> None:
        """Start the thread. active: returns the number of active requests."""
        self._active = active
        self.start()

    def _work(self) -> float:
        self._fill()
        return WATCH_SECONDS

    def _fill(self) -> None:
        """Compute the vectors of all documents that lack them, and then the graphs."""
        while missing := self._count():
            if self._start is None:
                self._start = time.monotonic()
                if missing >= SLICE_DOCUMENTS:
                    self._report(f"computing vectors of {plural(missing, 'document')} while idle")
            self._computed += self._vectors.compute_slice(self._wait_until_idle)
            self._succeeded()
        if self._start and self._computed >= SLICE_DOCUMENTS:
            documents, seconds = plural(self._computed, "document"), time.monotonic() - self._start
            self._report(f"computed vectors of {documents} in {seconds:,.0f} s")
        self._start, self._computed = None, 0
        self._vectors.build_graphs(self._wait_until_idle)

    def _count(self) -> int:
        """Return how many documents lack vectors that can be computed."""
        self._wait_until_idle()
        missing = self._vectors.documents
        if missing is None:
            self._report_once(OTHER_VECTORS)
        self.missing = missing or 0
        return self.missing

    def _wait_until_idle(self) -> None:
        """Return at once without active requests, else when there was none for QUIET_SECONDS."""
        quiet_until = 0.0
        while True:
            self._wait(0)
            if self._active():
                quiet_until = time.monotonic() + QUIET_SECONDS
            elif time.monotonic() >= quiet_until:
                return
            self._wait(POLL_SECONDS)
