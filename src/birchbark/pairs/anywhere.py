"""Which documents of a whole collection are drawn for each query, when it is read only once?

Li 1994, "Reservoir-sampling algorithms" (L): each query says which document it takes next, so that
a collection of n documents costs a query about count · log(n / count) steps, not n.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from heapq import heapify, heapreplace

from birchbark.errors import InputError
from birchbark.records import Qrels


def from_collection(
    qrels: Qrels, doc_ids: Iterable[str], count: int, seed: int
) -> dict[str, list[str]]:
    """For each query of `qrels` up to `count` documents that nobody judged for it.

    doc_ids: distinct, read once. Any set of `count` is as likely as any other. The same arguments
    in the same order give the same documents. Holds no more than `count` ids a query.
    """
    if count < 1:
        raise InputError(
            "number of documents is out of range", wanted="1 or more", found=str(count)
        )
    chance = random.Random(seed)
    reservoirs = {query_id: _Reservoir(count, chance) for query_id in qrels.grades}
    judging: dict[str, list[_Reservoir]] = {}
    for query_id, grades in qrels.grades.items():
        for doc_id in grades:
            judging.setdefault(doc_id, []).append(reservoirs[query_id])
    waiting = [(0, number) for number in range(len(reservoirs))]
    heapify(waiting)
    numbered = list(reservoirs.values())
    for place, doc_id in enumerate(doc_ids):
        for reservoir in judging.get(doc_id, ()):
            reservoir.due += 1  # its places are those of the unjudged documents
        while waiting and waiting[0][0] == place:
            number = waiting[0][1]
            reservoir = numbered[number]
            if reservoir.due == place:
                reservoir.take(doc_id)
            heapreplace(waiting, (reservoir.due, number))
    return {query_id: reservoir.kept for query_id, reservoir in reservoirs.items()}


class _Reservoir:
    """What one query has drawn so far, and the place of the document that it takes next."""

    __slots__ = ("chance", "count", "due", "kept", "share")

    def __init__(self, count: int, chance: random.Random) -> None:
        self.count, self.chance = count, chance
        self.kept: list[str] = []
        self.due = 0
        self.share = 1.0

    def take(self, doc_id: str) -> None:
        """Keep `doc_id`, from when on the reservoir is full in place of another."""
        if len(self.kept) < self.count:
            self.kept.append(doc_id)
        else:
            self.kept[int(self.chance.random() * self.count)] = doc_id
        self.due += 1
        if len(self.kept) == self.count:
            self.share *= math.exp(self._log() / self.count)
            self.due += math.floor(self._log() / math.log1p(-min(self.share, 1 - 1e-15)))

    def _log(self) -> float:
        return math.log(1 - self.chance.random())
