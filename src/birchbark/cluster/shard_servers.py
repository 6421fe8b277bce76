"""How do the nodes of a ray cluster rank the documents of an index's shards for a service?

Each shard has a ray actor, which reads the shard's postings. The service's process
computes the statistics of the whole index, sends them along with the terms, and merges the
rankings, so that scores are those of one index, bit for bit. Ray starts an actor again if its
process or node is lost. Until then the answers lack its documents, and say so.

Among given documents, such as those with a phrase, and those that vectors found, the service's
process ranks itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from pathlib import Path
from threading import Lock
from typing import Any

from birchbark.cluster.actors import LostActors, own_error, wait_for_all
from birchbark.cluster.on_ray import Resources
from birchbark.errors import ArtifactError, InputError
from birchbark.index.index import Index
from birchbark.index.statistics import Statistics
from birchbark.records import Ranking
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.match import Selection
from birchbark.retrieve.rank_terms import rank
from birchbark.retrieve.weighting_model import WeightingModel

MAX_SECONDS = 10.0  # for an answer, if the search has no deadline
HEALTHY_SECONDS = 0.5  # in which a shard answers that is not lost
SHARE = 0.5  # of the remaining time; the rest is for reading the candidates
REQUESTS = 8  # that an actor carries out at the same time; others wait


class ShardServer:
    """Ranks the documents of one shard, in an actor."""

    def __init__(self, folder: str) -> None:
        self._folder, self._lock = Path(folder), Lock()
        self._index = index = Index(self._folder)
        # what is loaded at the first ranking would make the first search late
        rank_query(index, {"warm up": 1.0}, FirstStage(fields={index.fields[0]: 1.0}), 1)

    def ping(self) -> None:
        """Return, to show that the shard is open."""

    def rank(self, state: str, *arguments: Any) -> Ranking:
        """Rank the shard's documents. arguments: those of `rank` after the index.

        state: see `Index.shard_states`. Raises ArtifactError if the shard has other documents.
        """
        return rank(self._at(state), *arguments)

    def _at(self, state: str) -> Index:
        with self._lock:
            if self._index.outdated:
                self._index = Index(self._folder)
            index = self._index
        if index.shard_states[""] != state:
            raise ArtifactError(
                "the shard has other documents than the index that is searched",
                where=str(self._folder),
            )
        return index


class ShardServers:
    """The actors of all shards of an index."""

    def __init__(self, ray: Any, folders: Mapping[str, Path], resources: Resources) -> None:
        """Start an actor for each shard, and wait until all have opened theirs.

        folders: name → folder of each shard. Raises InputError if an actor finds no room.
        """
        self._ray = ray
        server = ray.remote(ShardServer).options(
            num_cpus=resources.cpus,
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=REQUESTS,
        )
        self._actors = {name: server.remote(str(path)) for name, path in folders.items()}
        self._lost = LostActors[str](ray, lambda name: self._actors[name].ping.remote())
        opened = {actor.ping.remote(): name for name, actor in self._actors.items()}
        wait_for_all(ray, list(opened), resources.cpus)
        for opening in opened:
            try:
                ray.get(opening)
            except ray.exceptions.RayError as error:
                raise InputError(
                    "a node cannot open a shard",
                    where=str(folders[opened[opening]]),
                    found=str(error).strip().splitlines()[-1],
                    remedy="all nodes must see the index at the same path",
                ) from None

    def search(self, remaining: Callable[[], float]) -> ShardSearch:
        """See RemoteRankers."""
        return ShardSearch(self, remaining)

    def close(self) -> None:
        """End all actors."""
        for actor in self._actors.values():
            self._ray.kill(actor)

    def ask(self, arguments: Mapping[str, tuple[Any, ...]], seconds: float) -> dict[str, Ranking]:
        """Return shard → ranking, for those that answer in time.

        arguments: shard → arguments of `ShardServer.rank`. Lost shards are not asked. Raises the
        InputError of a shard.
        """
        ray, exceptions = self._ray, self._ray.exceptions
        asked = {
            self._actors[name].rank.remote(*values): name
            for name, values in arguments.items()
            if name not in self._lost
        }
        if not asked:
            return {}
        ready, late = ray.wait(list(asked), num_returns=len(asked), timeout=seconds)
        rankings = {}
        for answer in ready:
            try:
                rankings[asked[answer]] = ray.get(answer)
            except exceptions.RayTaskError as error:
                if isinstance(error.cause, ArtifactError):
                    continue  # its documents have just changed
                raise own_error(error) from None
            except exceptions.RayError:
                self._lost.add(asked[answer])
        if seconds >= HEALTHY_SECONDS:  # a shorter deadline is no sign of a lost node
            for answer in late:
                self._lost.add(asked[answer])
        return rankings


class ShardSearch:
    """One search; see RemoteSearch."""

    def __init__(self, servers: ShardServers, remaining: Callable[[], float]) -> None:
        self._servers, self._remaining = servers, remaining
        self.missing: Set[str] = frozenset()

    def __call__(
        self,
        index: Index,
        weights: Mapping[str, float],
        fields: Mapping[str, tuple[float, WeightingModel]],
        statistics: Mapping[str, Statistics],
        selection: Selection,
        depth: int,
    ) -> Ranking:
        """See RankTerms.

        A model that needs the frequencies of all terms (tf-idf) ranks in this process: they would
        be too much to send.
        """
        if any(model.all_terms for _, model in fields.values()):
            return rank(index, weights, fields, statistics, selection, depth)
        common = weights, fields, statistics, selection, depth
        states = index.shard_states
        arguments = {name: (state, *common) for name, state in states.items()}
        rankings = self._servers.ask(arguments, min(MAX_SECONDS, SHARE * self._remaining()))
        self.missing |= states.keys() - rankings.keys()
        return Ranking.from_pairs(
            [pair for ranking in rankings.values() for pair in ranking], depth
        )
