"""How are ray actors waited for, and which of them do not answer at present?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar

from birchbark.errors import BirchbarkError, InputError

K = TypeVar("K")
START_SECONDS = 60.0  # until all actors must run
ASK_SECONDS = 0.5  # between two questions to a lost actor


def wait_for_all(ray: Any, answers: Sequence[Any], cpus: int) -> None:
    """Wait for the first answers of new actors of so many CPUs; InputError if one finds no room."""
    ready, pending = ray.wait(list(answers), num_returns=len(answers), timeout=START_SECONDS)
    if pending:
        raise InputError(
            "the cluster has no room for all processes",
            wanted=f"{cpus} CPUs for each of {len(answers)}",
            found=f"{len(ready)} run after {START_SECONDS:g} s",
        )


def own_error(error: Any) -> Exception:
    """Return the BirchbarkError that a RayTaskError contains, or else that error itself."""
    found: Exception = error.cause if isinstance(error.cause, BirchbarkError) else error
    return found


class LostActors(Generic[K]):
    """Actors that did not answer in time, or whose process was lost.

    They are asked a question, and count as lost until they have answered it, so that no request
    waits for them.
    """

    def __init__(self, ray: Any, ask: Callable[[K], Any]) -> None:
        """ask: asks the actor of a key something; returns ray's reference to the answer."""
        self._ray, self._ask, self._lock = ray, ask, Lock()
        self._asked: dict[K, tuple[float, Any]] = {}  # key → when, and the answer

    def add(self, key: K) -> None:
        """Count an actor as lost."""
        with self._lock:
            self._asked[key] = time.monotonic(), self._ask(key)

    def __contains__(self, key: K) -> bool:
        """Whether the actor is still lost."""
        with self._lock:
            if key not in self._asked:
                return False
            asked_at, answer = self._asked[key]
            if not self._ray.wait([answer], timeout=0)[0]:
                return True
            try:
                self._ray.get(answer)
            except self._ray.exceptions.RayError:
                if time.monotonic() > asked_at + ASK_SECONDS:
                    self._asked[key] = time.monotonic(), self._ask(key)
                return True
            del self._asked[key]
            return False
