"""Which processes of a ray cluster does a service use?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from birchbark.cluster.on_ray import Resources, check_resources, connection, import_ray
from birchbark.cluster.scorer_servers import ScorerServers
from birchbark.cluster.shard_servers import ShardServers
from birchbark.errors import InputError
from birchbark.index.shards import shard_folders
from birchbark.score.session import SessionFactory


@dataclass(frozen=True, slots=True)
class ServingProcesses:
    """What other processes do for a service.

    Attributes:
        rankers: They rank documents by their terms.
        session: Opens models that they run; None if the service runs models itself.
    """

    rankers: ShardServers
    session: SessionFactory | None


@contextmanager
def serving_processes(
    directory: Path,
    resources: Resources,
    scorers: int = 0,
    address: str | None = None,
    *,
    unlike_processors: bool = False,
) -> Iterator[ServingProcesses]:
    """Yield a process for each shard of an index, and `scorers` for models; they end with it.

    resources: of each process. address: see `run_on_ray`. unlike_processors: see `ScorerServers`.
    Raises MissingPackageError without ray, and InputError if the index is not divided, there is no
    cluster, or it has no room for the processes.
    """
    folders = {folder.name: folder.absolute() for folder in shard_folders(directory)}
    if not folders:
        raise InputError(
            "the index is not divided into shards",
            where=str(directory),
            remedy="birchbark index … --shards N; or `birchbark serve`, on this machine",
        )
    ray = import_ray()
    with connection(ray, address), ExitStack() as stack:
        check_resources(ray, resources)
        needed = resources.cpus * (len(folders) + scorers)
        if (cpus := ray.cluster_resources().get("CPU", 0)) < needed:
            raise InputError(
                "the cluster has too few CPUs for all processes",
                wanted=f"{needed}: {resources.cpus} for each of {len(folders)} shards"
                + (f" and {scorers} scorers" if scorers else ""),
                found=f"{cpus:g}",
                remedy="more nodes, or an index in fewer shards",
            )
        rankers = ShardServers(ray, folders, resources)
        stack.callback(rankers.close)
        session = None
        if scorers:
            servers = ScorerServers(ray, scorers, resources, unlike_processors=unlike_processors)
            stack.callback(servers.close)
            session = servers.session
        yield ServingProcesses(rankers, session)
