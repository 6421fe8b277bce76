"""Birchbark ranks documents with BERT and shows the evidence.

The names below are the public surface; each is loaded from its room when first used, so that
`import birchbark` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from birchbark._version import __version__

if TYPE_CHECKING:
    from birchbark.combine.aggregate import Aggregation, First, Max, Mean, Sum, Top
    from birchbark.combine.interpolate import Interpolation
    from birchbark.combine.pairwise import Pairwise
    from birchbark.errors import BirchbarkError, InputError
    from birchbark.evaluate.measures import measure
    from birchbark.index.build import Schema, build_index
    from birchbark.index.reader import Index
    from birchbark.index.writer import IndexWriter
    from birchbark.pipeline.answer import Answer, Evidence, Hit, Work
    from birchbark.pipeline.dense import DenseEngine, Near
    from birchbark.pipeline.duo import Duo
    from birchbark.pipeline.ranker import Ranker
    from birchbark.pipeline.rerank import rerank
    from birchbark.pipeline.search import search
    from birchbark.pipeline.searcher import Searcher
    from birchbark.pipeline.texts import RankedText, rank_texts
    from birchbark.records import Document, Qrels, Query, Ranking, Run, Segment
    from birchbark.retrieve.bm25 import BM25
    from birchbark.retrieve.engine import IndexEngine
    from birchbark.retrieve.first_stage import FirstStage, rank_queries, rank_query
    from birchbark.retrieve.match import AND, OR, Match
    from birchbark.retrieve.rm3 import RM3
    from birchbark.score.duo import load_duo
    from birchbark.score.model import load_scorer

_HOME = {
    "Aggregation": "combine.aggregate",
    "First": "combine.aggregate",
    "Max": "combine.aggregate",
    "Mean": "combine.aggregate",
    "Sum": "combine.aggregate",
    "Top": "combine.aggregate",
    "Pairwise": "combine.pairwise",
    "Interpolation": "combine.interpolate",
    "BirchbarkError": "errors",
    "InputError": "errors",
    "measure": "evaluate.measures",
    "Schema": "index.build",
    "build_index": "index.build",
    "Index": "index.reader",
    "IndexWriter": "index.writer",
    "Answer": "pipeline.answer",
    "Evidence": "pipeline.answer",
    "Hit": "pipeline.answer",
    "Work": "pipeline.answer",
    "DenseEngine": "pipeline.dense",
    "Near": "pipeline.dense",
    "Duo": "pipeline.duo",
    "Ranker": "pipeline.ranker",
    "rerank": "pipeline.rerank",
    "search": "pipeline.search",
    "Searcher": "pipeline.searcher",
    "RankedText": "pipeline.texts",
    "rank_texts": "pipeline.texts",
    "Document": "records",
    "Qrels": "records",
    "Query": "records",
    "Ranking": "records",
    "Run": "records",
    "Segment": "records",
    "BM25": "retrieve.bm25",
    "AND": "retrieve.match",
    "OR": "retrieve.match",
    "Match": "retrieve.match",
    "IndexEngine": "retrieve.engine",
    "FirstStage": "retrieve.first_stage",
    "rank_queries": "retrieve.first_stage",
    "rank_query": "retrieve.first_stage",
    "RM3": "retrieve.rm3",
    "load_duo": "score.duo",
    "load_scorer": "score.model",
}

# Written out, so that type checkers see it; a test holds it to the table above.
__all__ = [
    "AND",
    "BM25",
    "OR",
    "RM3",
    "Aggregation",
    "Answer",
    "BirchbarkError",
    "DenseEngine",
    "Document",
    "Duo",
    "Evidence",
    "First",
    "FirstStage",
    "Hit",
    "Index",
    "IndexEngine",
    "IndexWriter",
    "InputError",
    "Interpolation",
    "Match",
    "Max",
    "Mean",
    "Near",
    "Pairwise",
    "Qrels",
    "Query",
    "RankedText",
    "Ranker",
    "Ranking",
    "Run",
    "Schema",
    "Searcher",
    "Segment",
    "Sum",
    "Top",
    "Work",
    "__version__",
    "build_index",
    "load_duo",
    "load_scorer",
    "measure",
    "rank_queries",
    "rank_query",
    "rank_texts",
    "rerank",
    "search",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'birchbark' has no attribute {name!r}")
    return getattr(import_module(f"birchbark.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
