"""What must other processes do that rank the documents of an index's shards?"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Protocol

from birchbark.retrieve.rank_terms import RankTerms


class RemoteSearch(RankTerms, Protocol):
    """One search, in which other processes rank documents by their terms."""

    @property
    def missing(self) -> Set[str]:
        """The names of the shards that did not answer in time."""
        ...


class RemoteRankers(Protocol):
    """Processes that rank documents by their terms, one or more for each shard."""

    def search(self, remaining: Callable[[], float]) -> RemoteSearch:
        """Begin a search. remaining: returns how many seconds are left for it, or infinity."""
        ...
