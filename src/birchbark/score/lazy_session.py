"""How is a model loaded only when something is to be computed with it?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.records import Ids
from birchbark.score.precision import Precision
from birchbark.score.session import Floats, Session, SessionFactory


class LazySession:
    """A session that is opened by its first use, or by `open`; threads may share it."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._open, self._lock = open_session, Lock()
        self._session: Session | None = None

    def open(self) -> Session:
        """Return the session, opened; raises what opening it raises."""
        with self._lock:
            if self._session is None:
                self._session = self._open()
            return self._session

    def fingerprint(self, checkpoint: str) -> str:
        """See OnnxSession."""
        return self.open().fingerprint(checkpoint)

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """See OnnxSession."""
        return self.open().run(ids, types)


def when_needed(factory: SessionFactory) -> SessionFactory:
    """Return a factory whose sessions are opened by `factory` when they are first used."""

    def lazily(
        checkpoint: Checkpoint, threads: int | None = None, *, precision: Precision = Precision.FP32
    ) -> LazySession:
        return LazySession(partial(factory, checkpoint, threads, precision=precision))

    return lazily
