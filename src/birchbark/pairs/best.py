"""Which passages of a document are learnt from? All, or those that a model thinks the best.

Most passages of a relevant document say nothing of the query; with all of them a training learns to
call them relevant. Chen et al. 2021 took the five best by a larger model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from birchbark.errors import InputError
from birchbark.records import Pair, Query
from birchbark.score.scorer import Scorer


@dataclass(slots=True)
class Best:
    """The `count` best passages of each document by `scorer`.

    scored: passages so far. cut: those that it could not read whole, and judged by their beginning.
    """

    scorer: Scorer
    count: int
    scored: int = 0
    cut: int = 0

    def __post_init__(self) -> None:
        if self.scorer.width > 1:
            raise InputError("this model judges documents, no segments", found=self.scorer.name)

    def check(self, queries: Iterable[Query]) -> None:
        """Raise InputError for a query that leaves no room for text, before any work."""
        for query in queries:
            try:
                self.scorer.room(query.text)
            except InputError as error:
                raise error.at(f"query {query.query_id}") from None

    def of(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs of those passages, in their order; equal ones: the first of them.

        pairs: those of one query and document next to each other.
        """
        for _, own in groupby(pairs, key=lambda pair: (pair.query_id, pair.doc_id)):
            passages = list(own)
            if len(passages) > self.count:
                best = np.sort(np.argsort(-self._scores(passages), kind="stable")[: self.count])
                passages = [passages[place] for place in best.tolist()]
            yield from passages

    def _scores(self, passages: list[Pair]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        query = passages[0].query
        room = self.scorer.room(query)
        pieces = self.scorer.encode([pair.text for pair in passages])
        self.scored += len(pieces)
        self.cut += sum(len(piece) > room for piece in pieces)
        return self.scorer.score(query, [piece[:room] for piece in pieces])
