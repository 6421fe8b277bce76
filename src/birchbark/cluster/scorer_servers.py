"""How do the nodes of a ray cluster run BERT for a service?

Each ray actor runs any model that it is asked for, on its own cores. The inputs of a request, which
a service combines from several searches, are divided among the actors. What a lost actor should
have computed is computed in the service's process, so that nothing is missing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from socket import gethostname
from typing import Any

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.cluster.actors import START_SECONDS, LostActors, own_error, wait_for_all
from birchbark.cluster.on_ray import Resources
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Ids
from birchbark.score.precision import Precision
from birchbark.score.session import Floats, OnnxSession, Session
from birchbark.score.vector_instructions import processor

Model = tuple[str, Checkpoint, Precision]  # the first is the fingerprint, which takes a while
BASE_SECONDS, SECONDS_PER_TOKEN = 1.0, 0.002  # after which an actor's answer is not waited for


class ScorerServer:
    """Runs models in an actor. threads: number of threads."""

    def __init__(self, threads: int) -> None:
        self._threads, self._sessions = threads, dict[tuple[str, Precision], OnnxSession]()

    def processor(self) -> str:
        """Return the kind of this node's processor."""
        return processor()

    def run(self, model: Model, ids: Sequence[Ids], types: Sequence[Ids] | None) -> Floats:
        """Run a model, which is loaded if it was not before; see `OnnxSession.run`."""
        return self._session(model).run(ids, types)

    def load(self, models: Sequence[Model]) -> None:
        """Load models, so that their first calls are not late."""
        for model in models:
            self._session(model)

    def _session(self, model: Model) -> OnnxSession:
        fingerprint, checkpoint, precision = model
        key = fingerprint, precision
        if key not in self._sessions:
            if checkpoint.fingerprint != fingerprint:
                raise CheckpointError(
                    "another version of the model on this node",
                    where=f"{gethostname()}: {checkpoint.directory}",
                    remedy="copy the model that the service has to all nodes",
                )
            self._sessions[key] = OnnxSession(checkpoint, self._threads, precision=precision)
        return self._sessions[key]


class ScorerServers:
    """The actors that run models."""

    def __init__(
        self, ray: Any, count: int, resources: Resources, *, unlike_processors: bool = False
    ) -> None:
        """Start `count` actors, and wait until all run.

        unlike_processors: whether nodes may have processors with other vector instructions than
        this machine. Raises InputError if they do but may not, and if there is no room for an
        actor.
        """
        self._ray, self._lost = ray, LostActors[int](ray, self._load_all)
        self._opened = dict[tuple[str, Precision], Model]()
        actor = ray.remote(ScorerServer).options(
            num_cpus=resources.cpus, max_restarts=-1, max_task_retries=0
        )
        self._actors = [actor.remote(resources.cpus) for _ in range(count)]
        kinds = [actor.processor.remote() for actor in self._actors]
        wait_for_all(ray, kinds, resources.cpus)
        others = set(ray.get(kinds)) - {processor()}
        if others and not unlike_processors:
            raise InputError(
                "scores would be computed by unlike processors",
                found=" and ".join(sorted({processor(), *others})),
                remedy="nodes of one kind, or --unlike-processors",
            )

    def close(self) -> None:
        """End all actors."""
        for actor in self._actors:
            self._ray.kill(actor)

    def session(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        *,
        precision: Precision = Precision.FP32,
    ) -> Session:
        """Open a session that the actors run; a SessionFactory."""
        session = RemoteSession(self, checkpoint, threads, precision)  # refuses a damaged model
        fingerprint, _, _ = session.model
        self._opened[fingerprint, precision] = session.model
        loading = [self._load_all(number) for number in range(len(self._actors))]
        self._ray.wait(loading, num_returns=len(loading), timeout=START_SECONDS)
        return session

    def run(
        self, model: Model, ids: Sequence[Ids], types: Sequence[Ids] | None
    ) -> list[tuple[slice, Floats | None]]:
        """Divide inputs among the actors; return each part's result, None if its actor was lost."""
        here = [number for number in range(len(self._actors)) if number not in self._lost]
        if not here:
            return [(slice(0, len(ids)), None)]
        asked = [
            (number, part, self._actors[number].run.remote(model, ids[part], types and types[part]))
            for number, part in zip(here, _parts(ids, len(here)), strict=False)
        ]
        tokens = max(sum(map(len, ids[part])) for _, part, _ in asked)
        end = time.monotonic() + BASE_SECONDS + SECONDS_PER_TOKEN * tokens
        return [(part, self._result(number, answer, end)) for number, part, answer in asked]

    def _result(self, number: int, answer: Any, end: float) -> Floats | None:
        exceptions = self._ray.exceptions
        try:
            rows: Floats = self._ray.get(answer, timeout=max(0.0, end - time.monotonic()))
            return rows
        except exceptions.RayTaskError as error:
            raise own_error(error) from None
        except (exceptions.RayError, TimeoutError):
            self._lost.add(number)
            return None

    def _load_all(self, number: int) -> Any:
        return self._actors[number].load.remote([*self._opened.values()])


def _parts(ids: Sequence[Ids], count: int) -> list[slice]:
    """Divide inputs into `count` parts, or fewer, of about as many tokens each."""
    ends = np.cumsum([len(i) for i in ids])
    inner = np.searchsorted(ends, ends[-1] * np.arange(1, count) / count) + 1
    return [slice(a, b) for a, b in pairwise([0, *inner.tolist(), len(ids)]) if a < b]


class RemoteSession:
    """A model that actors run, and this process in place of those that are lost; see Session."""

    def __init__(
        self,
        servers: ScorerServers,
        checkpoint: Checkpoint,
        threads: int | None,
        precision: Precision,
    ) -> None:
        self._servers, self.model = servers, (checkpoint.fingerprint, checkpoint, precision)
        self._here = OnnxSession(checkpoint, threads, precision=precision)

    def fingerprint(self, checkpoint: str) -> str:
        """Return that of the same model on this machine, whose scores are the same."""
        return self._here.fingerprint(checkpoint)

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """See `OnnxSession.run`."""
        if not ids:
            return self._here.run(ids, types)
        parts = [
            self._here.run(ids[part], types and types[part]) if rows is None else rows
            for part, rows in self._servers.run(self.model, ids, types)
        ]
        return np.concatenate(parts)
