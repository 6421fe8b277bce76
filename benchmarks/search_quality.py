"""How good is the ranking of each way to search, on each collection? Nothing is timed here."""

from __future__ import annotations

from typing import Any

from benchmarks.search_collections import Prepared
from benchmarks.search_rows import Row
from birchbark import Run, Searcher, defaults, measure
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.records import Ranking

MEASURES = ("AP", "nDCG@10", f"R@{defaults.RERANKING_DEPTH}")
Figures = dict[str, Any]


def measure_row(prepared: Prepared, row: Row, models: LoadedModels) -> Figures:
    """Return measure → mean over the queries, of the best hundred documents."""
    searcher = Searcher(prepared.indexes[row.vectors], row.ranker(models) or (), loaded=models)
    rankings = {}
    for query in prepared.queries:
        answer = searcher.search(searcher.parse(query.text, literal=True), defaults.RERANKING_DEPTH)
        if not answer.stats.exact:
            raise AssertionError(f"{row.name}: the answer to {query.query_id} is not exact")
        count = len(answer.hits)
        doc_ids = [hit.document.doc_id for hit in answer.hits]
        rankings[query.query_id] = Ranking.of(doc_ids, list(range(count, 0, -1)))
    return means(prepared, Run(rankings))


def means(prepared: Prepared, run: Run) -> Figures:
    """Return measure → mean over the queries of a run."""
    return dict(measure(prepared.qrels, run, MEASURES).means)
