"""How are the shards of a piece of work done on a ray cluster?

Ray places them, and starts those again whose node was lost.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from birchbark.cluster.actors import own_error
from birchbark.cluster.shard import Shard
from birchbark.errors import BirchbarkError, InputError, extra, first_line

T = TypeVar("T")
CONNECTION_SECONDS = 10.0
RESTARTS = 3  # of a shard whose process or node was lost


@dataclass(frozen=True, slots=True)
class Resources:
    """What a shard occupies while it is done.

    Attributes:
        cpus: Number of CPU cores.
        gpus: Number of GPUs; a fraction lets several shards share one.
    """

    cpus: int
    gpus: float = 0

    def __post_init__(self) -> None:
        if self.gpus > 1 and self.gpus != int(self.gpus):  # which ray would refuse later
            raise InputError(
                "number of GPUs out of range",
                wanted="a whole number, or one below 1",
                found=f"{self.gpus:g}",
            )


def run_on_ray(
    work: Callable[[Shard], T], count: int, resources: Resources, address: str | None = None
) -> Generator[tuple[Shard, T]]:
    """Do `count` shards on a ray cluster; yield each with its result, in the order of finishing.

    work: called on the nodes, with one shard at a time in a process; birchbark must be installed
    there. It is called again for the same shard if its node is lost, so it must be repeatable.
    address: the cluster's; None for that of RAY_ADDRESS, one running here, or else a new one here.
    Raises MissingPackageError without ray; before work begins, InputError if there is no cluster at
    the address, or no node of it has these resources; and the first error of a shard. The
    others are stopped then, and also if the iterator is closed.
    """
    ray = import_ray()
    with connection(ray, address):
        check_resources(ray, resources)
        options = {"num_cpus": resources.cpus, "num_gpus": resources.gpus, "max_retries": RESTARTS}

        @ray.remote(**options)  # type: ignore[untyped-decorator]
        def task(shard: Shard) -> T:
            return work(shard)

        shards = [Shard(number, count) for number in range(1, count + 1)]
        pending = {task.remote(shard): shard for shard in shards}
        try:
            while pending:
                (done,), _ = ray.wait(list(pending), num_returns=1)
                shard = pending.pop(done)
                yield shard, _result(ray, done, shard)
        finally:
            for left in pending:
                ray.cancel(left, force=True)


def import_ray() -> Any:
    """Return the module ray; MissingPackageError without it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to ray's makers
    with extra("ray"):
        import ray
    return ray


@contextmanager
def connection(ray: Any, address: str | None) -> Iterator[None]:
    """Connect to a cluster; see `run_on_ray`. Raises InputError if there is none."""
    given = address or os.environ.get("RAY_ADDRESS", "")
    host, colon, port = given.partition(":")
    try:
        if colon and port.isdecimal():  # ray itself would try for minutes
            socket.create_connection((host, int(port)), CONNECTION_SECONDS).close()
        handler = signal.getsignal(signal.SIGTERM)
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        if handler and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # instead of ray's
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError("no ray cluster", where=given, found=first_line(error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def check_resources(ray: Any, wanted: Resources) -> None:
    """Raise InputError if no node of the cluster has the resources."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(
        node.get("CPU", 0) >= wanted.cpus and node.get("GPU", 0) >= wanted.gpus for node in nodes
    ):
        raise InputError(
            "no node of the cluster has what a shard needs",
            wanted=f"{wanted.cpus} CPUs and {wanted.gpus:g} GPUs",
            found="; ".join(
                f"{x.get('CPU', 0):g} CPUs and {x.get('GPU', 0):g} GPUs" for x in nodes
            ),
        )


def _result(ray: Any, reference: Any, shard: Shard) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise own_error(error) from None
    except ray.exceptions.RayError as error:
        raise BirchbarkError(
            f"shard {shard} cannot be done; it is started at most {1 + RESTARTS} times",
            found=first_line(error),
            remedy="finished shards are kept; the same command does the others",
        ) from None
