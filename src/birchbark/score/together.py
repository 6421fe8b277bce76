"""How are texts that several threads ask for at the same time run through a model together?"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread

import numpy as np

from birchbark.checkpoint.heads import by_token
from birchbark.checkpoint.reader import Checkpoint
from birchbark.records import Ids
from birchbark.score.precision import Precision
from birchbark.score.session import Floats, NewSession, Runner, Session

MOST_TOKENS = 8_192  # run in one go, so that nobody waits long for what others asked


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one thread waits for."""

    ids: Sequence[Ids]
    types: Sequence[Ids] | None
    found: Future[Floats]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.ids))


class Together:
    """A session that threads may ask at once: what waits is run in one go, in the order asked.

    Short requests of several queries fill batches that each alone would leave half empty, and the
    processors run one batch each, however many ask. Values are the session's own, whoever asks
    beside: a score does not depend on its batch.
    """

    def __init__(self, session: Runner, *, by_token: bool = False) -> None:
        """`session` is asked by one thread alone, which ends when this is no longer held.

        by_token: whether it gives as many rows as there are tokens.
        """
        self._session = session
        self._waiting: SimpleQueue[_Asked | None] = SimpleQueue()
        args = (session, self._waiting, by_token)
        Thread(target=_serve, args=args, name="birchbark-together", daemon=True).start()
        weakref.finalize(self, self._waiting.put, None)

    def fingerprint(self, checkpoint: str) -> str:
        """The session's."""
        return self._session.fingerprint(checkpoint)

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """See Session; waits until what others asked before is done.

        types: given by all who ask, or by none. Who asks for much has it done piece by piece, so
        that others come in between.
        """
        if not ids:
            return self._session.run(ids, types)
        ends = np.cumsum([len(one) for one in ids])
        found, at = [], 0
        while at < len(ids):
            done = ends[at - 1] if at else 0
            end = max(at + 1, int(np.searchsorted(ends, done + MOST_TOKENS, side="right")))
            asked = _Asked(ids[at:end], types and types[at:end], Future())
            self._waiting.put(asked)
            found.append(asked.found.result())
            at = end
        return found[0] if len(found) == 1 else np.concatenate(found)


def _serve(session: Runner, waiting: SimpleQueue[_Asked | None], by_token: bool) -> None:
    """Run what waits, until None comes."""
    while (first := waiting.get()) is not None:
        group, tokens = [first], first.tokens
        while tokens < MOST_TOKENS and not waiting.empty():  # nobody else takes from it
            if (asked := waiting.get()) is None:
                _run(session, group, by_token)
                return
            group.append(asked)
            tokens += asked.tokens
        _run(session, group, by_token)
        del first, group  # not kept alive while nothing is asked
        asked = None


def _run(session: Runner, group: Sequence[_Asked], by_token: bool) -> None:
    try:
        ids = [one for asked in group for one in asked.ids]
        types = [one for asked in group for one in asked.types or ()]
        rows = session.run(ids, types or None)
        ends = np.cumsum([asked.tokens if by_token else len(asked.ids) for asked in group])
        for asked, own in zip(group, np.split(rows, ends[:-1]), strict=True):
            asked.found.set_result(own)
    except BaseException as error:  # told to those who asked; others may go on
        for asked in group:
            if not asked.found.done():
                asked.found.set_exception(error)


def together(session: NewSession = Session) -> NewSession:
    """Makes sessions of that kind which threads may ask at once."""

    def made(
        checkpoint: Checkpoint, threads: int | None = None, *, precision: Precision = Precision.FP32
    ) -> Together:
        own = session(checkpoint, threads, precision=precision)
        return Together(own, by_token=by_token(checkpoint.head))

    return made
