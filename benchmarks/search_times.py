"""How long does each way to search take, for queries that were never asked before?

A query is timed either with all documents new (a searcher and scorers that have read nothing, with
models loaded and the index open), or as the next query of a running service (one searcher for all
queries, which remembers sentences and vectors of the documents it has read).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rounds import quantiles
from benchmarks.search_rows import Row
from birchbark import Query, Searcher
from birchbark.pipeline.loaded_models import LoadedModels

Figures = dict[str, Any]
FEWEST = 10  # queries that are timed, however long they take


@dataclass(frozen=True, slots=True)
class TimedSearch:
    """Times the searches of one row on one index.

    seconds: the time after which no further query starts, unless fewer than FEWEST did.
    """

    row: Row
    index: Path
    models: LoadedModels
    seconds: float

    def new_documents(self, queries: Sequence[Query]) -> Figures:
        """Time each query on a new searcher."""
        return self._measure(queries, None)

    def running(self, queries: Sequence[Query]) -> Figures:
        """Time queries one after another on the same searcher."""
        return self._measure(queries, self._searcher())

    def _searcher(self) -> Searcher:
        """Return a searcher with empty caches, which has opened everything that it needs."""
        searcher = Searcher(self.index, self.row.ranker(self.models) or (), loaded=self.models)
        searcher.warm_up()
        return searcher

    def _measure(self, queries: Sequence[Query], searcher: Searcher | None) -> Figures:
        times: list[float] = []
        pairs = embedded = 0
        for query in queries:
            if len(times) >= FEWEST and sum(times) > 1000 * self.seconds:
                break
            fresh = searcher or self._searcher()
            start = time.perf_counter()
            answer = fresh.search(fresh.parse(query.text, literal=True))
            times.append(1000 * (time.perf_counter() - start))
            if not answer.stats.exact:
                raise AssertionError(f"{self.row.name}: the answer is not exact")
            pairs += answer.stats.pairs - answer.stats.embedded
            embedded += answer.stats.embedded
        return {
            **quantiles(times),
            "queries": len(times),
            "pairs": pairs / len(times),
            "embedded": embedded / len(times),
        }
