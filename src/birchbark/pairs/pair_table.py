"""How are training pairs held, as arrays that index distinct queries and texts?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from birchbark.lazy_sequence import LazySequence

T = TypeVar("T")
Indices = NDArray[np.integer]


class Selected(LazySequence[T]):
    """Those items of a sequence that are at `positions` (n,)."""

    def __init__(self, items: Sequence[T], positions: NDArray[np.integer]) -> None:
        self._items, self._positions = items, positions

    def __len__(self) -> int:
        return len(self._positions)

    def item(self, index: int) -> T:
        """Return the item at a position."""
        return self._items[int(self._positions[index])]


class Groups(LazySequence[Indices]):
    """Several groups of indices, such as the pairs of each query, in two arrays.

    members: the indices of all groups, one group after another (members,). ends: where each group
    ends in `members` (groups,).
    """

    def __init__(self, members: NDArray[np.integer], ends: NDArray[np.integer]) -> None:
        self.members, self.ends = members, ends

    @classmethod
    def by(cls, group: NDArray[np.integer], count: int) -> Groups:
        """Return the ascending indices of each group's members.

        group: the group of each member (members,). count: the number of groups.
        """
        members = np.argsort(group, kind="stable")
        return cls(members, np.cumsum(np.bincount(group, minlength=count)))

    def __len__(self) -> int:
        return len(self.ends)

    def item(self, index: int) -> Indices:
        """Return the members of a group."""
        return self.members[self.ends[index - 1] if index else 0 : self.ends[index]]


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs as indices into distinct queries and distinct texts.

    A pair has one text, or the passages of a document.

    query: the index of each pair's query in `queries` (pairs,).
    text: the index of each passage in `texts` (passages,).
    starts: the passages of pair i are `text`[`starts`[i] : `starts`[i + 1]]; (pairs + 1,).
    grades: the grade of each pair (pairs,), float32.
    doc_ids: the document of each pair (pairs,).
    """

    queries: Sequence[str]
    texts: Sequence[str]
    query: NDArray[np.int32]
    text: NDArray[np.int32]
    starts: Indices
    grades: NDArray[np.float32]
    doc_ids: Sequence[str]

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def by_query(self) -> Groups:
        """For each query, the indices of its pairs."""
        return Groups.by(self.query, len(self.queries))

    @property
    def lowest_grades(self) -> NDArray[np.float32]:
        """The lowest grade of each query, (queries,)."""
        lowest = np.full(len(self.queries), np.inf, np.float32)
        np.minimum.at(lowest, self.query, self.grades)
        return lowest

    def passages(self, pair: int) -> NDArray[np.int32]:
        """Return the indices of a pair's passages, one or more, in `texts`."""
        return self.text[self.starts[pair] : self.starts[pair + 1]]

    def of_queries(self, chosen: NDArray[np.bool_]) -> PairTable:
        """Return the pairs of those queries that are `chosen` (queries,). Texts stay."""
        if chosen.all():
            return self
        is_kept = chosen[self.query]
        pairs, counts = np.flatnonzero(is_kept), np.diff(self.starts)
        return PairTable(
            Selected(self.queries, np.flatnonzero(chosen)),
            self.texts,
            (np.cumsum(chosen, dtype=np.int32) - 1)[self.query[pairs]],
            self.text[np.repeat(is_kept, counts)],
            np.concatenate([[0], np.cumsum(counts[pairs])]),
            self.grades[pairs],
            Selected(self.doc_ids, pairs),
        )
