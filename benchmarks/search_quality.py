"""How good is the ranking of each way to search, on each collection?

Scores are kept in a score store, so that a killed run goes on where it stopped, and a repeated run
scores nothing again. Nothing is timed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.search_collections import Prepared
from benchmarks.search_models import Models
from benchmarks.search_rows import Row
from birchbark import FirstStage, Index, Ranker, Run, SearchStats, measure, rerank
from birchbark.pipeline.load_rankers import with_score_caches

Figures = dict[str, Any]


def measure_rows(
    prepared: Prepared,
    first_stage: FirstStage,
    rows: Sequence[Row],
    models: Models,
    scores: Path,
    on_row: Callable[[str, Figures], object],
) -> None:
    """Rank all queries in the way of each row, and pass its name and figures to `on_row`.

    scores: the folder of the score store.
    """
    candidates = prepared.run(first_stage)
    rankers = [row.ranker(models.load, prepared.segmenter) for row in rows]
    with with_score_caches([r for r in rankers if r], scores) as cached:
        remaining = iter(cached.rankers)
        for row, ranker in zip(rows, rankers, strict=True):
            stored = next(remaining) if ranker else None
            on_row(row.name, _measure(prepared, candidates, row, stored))


def _measure(prepared: Prepared, candidates: Run, row: Row, ranker: Ranker | None) -> Figures:
    """Return AP, nDCG@10, the number of queries, and the pairs per query that the scorer read."""
    totals = [SearchStats()]
    run = candidates
    if ranker:
        index = Index(prepared.index(vectors=row.vectors))
        run = rerank(
            index,
            candidates,
            prepared.queries,
            ranker,
            on_query=lambda query: totals.append(totals.pop() + query.stats),
        )
    names = prepared.collection.measures
    means = measure(prepared.qrels, run, names).means
    count, stats = len(prepared.queries), totals[0]
    if not stats.exact:
        raise AssertionError(f"{row.name}: not every answer is exact")
    return {
        "AP": means[names[0]],
        "nDCG@10": means[names[1]],
        "queries": count,
        "pairs": (stats.pairs - stats.embedded) / count,
        "embedded": stats.embedded / count,
    }
