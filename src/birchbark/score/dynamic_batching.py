"""How are the texts of several threads run through a model in shared batches?"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import is_per_token
from birchbark.records import Ids
from birchbark.score.per_process import PerProcess
from birchbark.score.precision import Precision
from birchbark.score.session import Floats, OnnxSession, Session, SessionFactory

MAX_TOKENS = 8_192  # per call of the model, so that no thread waits long for another's texts


@dataclass(frozen=True, slots=True)
class _Request:
    """The inputs of one thread, and the future result it waits for."""

    ids: Sequence[Ids]
    types: Sequence[Ids] | None
    result: Future[Floats]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.ids))


class DynamicBatcher:
    """A session that threads can share: it combines their requests, in order of arrival.

    Short requests for several queries fill batches that each would leave half empty, and each
    processor runs one batch at a time, however many threads wait. The results equal those of the
    wrapped session, since a score does not depend on its batch.
    """

    def __init__(self, session: Session, *, per_token: bool = False) -> None:
        """Start the only thread that uses `session`; it ends when this object is deleted.

        per_token: whether the session returns a row per token instead of a row per input.
        """
        self._session = session
        self._waiting = PerProcess(partial(_start, session, per_token))
        weakref.finalize(self, _end, self._waiting)

    def fingerprint(self, checkpoint: str) -> str:
        """Return the fingerprint of the wrapped session."""
        return self._session.fingerprint(checkpoint)

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """Run the inputs after all earlier requests, and return what OnnxSession.run returns.

        types: either all threads pass them, or none does. Inputs of more than MAX_TOKENS tokens in
        total are split into several requests, so that other threads' requests can run in between.
        """
        if not ids:
            return self._session.run(ids, types)
        ends = np.cumsum([len(tokens) for tokens in ids])
        results, start = [], 0
        while start < len(ids):
            done = ends[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(ends, done + MAX_TOKENS, side="right")))
            request = _Request(ids[start:end], types and types[start:end], Future())
            self._waiting.get().put(request)
            results.append(request.result.result())
            start = end
        return results[0] if len(results) == 1 else np.concatenate(results)


def _start(session: Session, per_token: bool) -> SimpleQueue[_Request | None]:
    """Start the thread, and return the queue that it takes requests from."""
    waiting: SimpleQueue[_Request | None] = SimpleQueue()
    args = (session, waiting, per_token)
    Thread(target=_serve, args=args, name="birchbark-batcher", daemon=True).start()
    return waiting


def _end(waiting: PerProcess[SimpleQueue[_Request | None]]) -> None:
    waiting.get().put(None)


def _serve(session: Session, waiting: SimpleQueue[_Request | None], per_token: bool) -> None:
    """Run waiting requests in groups of about MAX_TOKENS tokens, until None arrives."""
    while (first := waiting.get()) is not None:
        group, tokens = [first], first.tokens
        while tokens < MAX_TOKENS and not waiting.empty():  # no other thread takes from it
            if (request := waiting.get()) is None:
                _run(session, group, per_token)
                return
            group.append(request)
            tokens += request.tokens
        _run(session, group, per_token)
        del first, group  # release their memory while the queue is empty
        request = None


def _run(session: Session, group: Sequence[_Request], per_token: bool) -> None:
    try:
        ids = [tokens for request in group for tokens in request.ids]
        types = [tokens for request in group for tokens in request.types or ()]
        rows = session.run(ids, types or None)
        ends = np.cumsum([request.tokens if per_token else len(request.ids) for request in group])
        for request, result in zip(group, np.split(rows, ends[:-1]), strict=True):
            request.result.set_result(result)
    except BaseException as error:  # raised in the waiting threads; this thread continues
        for request in group:
            if not request.result.done():
                request.result.set_exception(error)


def dynamic_batcher(session: SessionFactory = OnnxSession) -> SessionFactory:
    """Return a factory for sessions that threads can share. session: opens the wrapped session."""

    def open_session(
        checkpoint: Checkpoint, threads: int | None = None, *, precision: Precision = Precision.FP32
    ) -> DynamicBatcher:
        opened = session(checkpoint, threads, precision=precision)
        return DynamicBatcher(opened, per_token=is_per_token(checkpoint.head))

    return open_session
