"""Birchbark ranks documents with BERT and shows the evidence.

The names below are those that most programs need; docs/reference/submodules.md lists the others.
Each is imported from its package on first use, so that `import birchbark` takes a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from birchbark._version import __version__

if TYPE_CHECKING:
    from birchbark.collection.documents import read_collection
    from birchbark.collection.qrels import read_qrels
    from birchbark.collection.queries import read_queries
    from birchbark.collection.runs import read_run, write_run
    from birchbark.errors import BirchbarkError, InputError
    from birchbark.evaluate.measures import measure
    from birchbark.index.build_index import build_index
    from birchbark.index.index import Index
    from birchbark.index.writer import IndexWriter
    from birchbark.pipeline.load_rankers import load_ranker
    from birchbark.pipeline.pair_scorer import PairScorer
    from birchbark.pipeline.rank_texts import highlight, rank
    from birchbark.pipeline.rerank import rerank
    from birchbark.pipeline.search import search
    from birchbark.pipeline.searcher import Searcher
    from birchbark.pipeline.settings.ranker import Ranker
    from birchbark.records import Document, Qrels, Query, Run
    from birchbark.retrieve.first_stage import FirstStage, rank_queries
    from birchbark.score.load_scorer import load_scorer

_HOME = {
    "read_collection": "collection.documents",
    "read_qrels": "collection.qrels",
    "read_queries": "collection.queries",
    "read_run": "collection.runs",
    "write_run": "collection.runs",
    "BirchbarkError": "errors",
    "InputError": "errors",
    "measure": "evaluate.measures",
    "build_index": "index.build_index",
    "Index": "index.index",
    "IndexWriter": "index.writer",
    "PairScorer": "pipeline.pair_scorer",
    "highlight": "pipeline.rank_texts",
    "load_ranker": "pipeline.load_rankers",
    "load_scorer": "score.load_scorer",
    "rank_queries": "retrieve.first_stage",
    "rank": "pipeline.rank_texts",
    "Ranker": "pipeline.settings.ranker",
    "rerank": "pipeline.rerank",
    "search": "pipeline.search",
    "Searcher": "pipeline.searcher",
    "Document": "records",
    "Qrels": "records",
    "Query": "records",
    "Run": "records",
    "FirstStage": "retrieve.first_stage",
}

# Written out, so that type checkers see it; a test holds it to the table above.
__all__ = [
    "BirchbarkError",
    "Document",
    "FirstStage",
    "Index",
    "IndexWriter",
    "InputError",
    "PairScorer",
    "Qrels",
    "Query",
    "Ranker",
    "Run",
    "Searcher",
    "__version__",
    "build_index",
    "highlight",
    "load_ranker",
    "load_scorer",
    "measure",
    "rank",
    "rank_queries",
    "read_collection",
    "read_qrels",
    "read_queries",
    "read_run",
    "rerank",
    "search",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'birchbark' has no attribute {name!r}")
    return getattr(import_module(f"birchbark.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
