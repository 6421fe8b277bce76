"""How are random documents sampled for each query, in one pass over a collection?

This is algorithm L of Li 1994, "Reservoir-sampling algorithms". For each query it computes the
position of the next document to sample, and skips the documents before it. For n documents, it
takes about count · log(n / count) steps per query instead of n.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from heapq import heapify, heapreplace

from birchbark.errors import require_at_least
from birchbark.records import Qrels


def random_negatives(
    qrels: Qrels, doc_ids: Iterable[str], count: int, seed: int
) -> dict[str, list[str]]:
    """Sample up to `count` unjudged documents for each query of `qrels`, uniformly.

    doc_ids: the distinct ids of the collection, which are read once.
    The sample depends on seed, judgments and the order of `doc_ids` alone. Memory holds at most
    `count` ids per query. Raises InputError if `count` is below 1.
    """
    require_at_least("number of documents", count, 1)
    generator = random.Random(seed)
    reservoirs = {query_id: _Reservoir(count, generator) for query_id in qrels.grades}
    judged_by: dict[str, list[_Reservoir]] = {}  # doc_id → reservoirs that must not sample it
    for query_id, grades in qrels.grades.items():
        for doc_id in grades:
            judged_by.setdefault(doc_id, []).append(reservoirs[query_id])
    queue = [(0, number) for number in range(len(reservoirs))]  # (next position, reservoir index)
    heapify(queue)
    numbered = list(reservoirs.values())
    for position, doc_id in enumerate(doc_ids):
        for reservoir in judged_by.get(doc_id, ()):
            reservoir.due += 1  # reservoirs count unjudged documents only
        while queue and queue[0][0] == position:
            number = queue[0][1]
            reservoir = numbered[number]
            if reservoir.due == position:
                reservoir.take(doc_id)
            heapreplace(queue, (reservoir.due, number))
    return {query_id: reservoir.sampled for query_id, reservoir in reservoirs.items()}


class _Reservoir:
    """The sample of one query so far, and the position of the next document to sample."""

    __slots__ = ("count", "due", "generator", "sampled", "weight")

    def __init__(self, count: int, generator: random.Random) -> None:
        self.count, self.generator = count, generator
        self.sampled: list[str] = []
        self.due = 0
        self.weight = 1.0  # W of algorithm L

    def take(self, doc_id: str) -> None:
        """Add `doc_id`. If the reservoir is full, it replaces a random id."""
        if len(self.sampled) < self.count:
            self.sampled.append(doc_id)
        else:
            self.sampled[int(self.generator.random() * self.count)] = doc_id
        self.due += 1
        if len(self.sampled) == self.count:
            self.weight *= math.exp(self._log_uniform() / self.count)
            skipped = self._log_uniform() / math.log1p(-min(self.weight, 1 - 1e-15))
            self.due += math.floor(skipped)

    def _log_uniform(self) -> float:
        return math.log(1 - self.generator.random())
