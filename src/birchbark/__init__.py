"""Birchbark ranks documents with BERT and shows the evidence.

The names below are the public interface. Each is imported from its package on first use, so that
`import birchbark` takes a few milliseconds.
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
    from birchbark.combine.aggregate import Aggregation, First, Max, Mean, Sum, Top, TopMean
    from birchbark.combine.fusion import reciprocal_rank_fusion, score_fusion
    from birchbark.combine.interpolate import Interpolation
    from birchbark.combine.pairwise import Pairwise
    from birchbark.errors import BirchbarkError, InputError
    from birchbark.evaluate.measures import measure
    from birchbark.index.build_index import Schema, build_index
    from birchbark.index.index import Index
    from birchbark.index.sharded_writer import open_writer
    from birchbark.index.writer import IndexWriter
    from birchbark.pipeline.answers.answer import Answer, Evidence, Hit, SearchStats, Snippet
    from birchbark.pipeline.load_rankers import load_ranker
    from birchbark.pipeline.loaded_models import LoadedModels
    from birchbark.pipeline.open_engine import open_engine
    from birchbark.pipeline.pair_scorer import PairScorer
    from birchbark.pipeline.rank_texts import RankedText, highlight, rank
    from birchbark.pipeline.rerank import rerank
    from birchbark.pipeline.search import search
    from birchbark.pipeline.searcher import Searcher
    from birchbark.pipeline.settings.duo import Duo
    from birchbark.pipeline.settings.ranker import Ranker
    from birchbark.pipeline.settings.reading_plan import ReadingPlan
    from birchbark.records import Document, Qrels, Query, Ranking, Run, Segment
    from birchbark.retrieve.bm25 import BM25
    from birchbark.retrieve.engine import IndexEngine
    from birchbark.retrieve.first_stage import FirstStage, rank_queries, rank_query
    from birchbark.retrieve.match import AND, OR, Match
    from birchbark.retrieve.rm3 import RM3
    from birchbark.retrieve.tfidf import TfIdf
    from birchbark.retrieve.vector_match import BY_TERMS, CandidateScores, VectorMatch
    from birchbark.score.duo import load_duo_scorer
    from birchbark.score.load_scorer import load_scorer
    from birchbark.segment.passages import Passages
    from birchbark.segment.windows import Windows

_HOME = {
    "read_collection": "collection.documents",
    "read_qrels": "collection.qrels",
    "read_queries": "collection.queries",
    "read_run": "collection.runs",
    "write_run": "collection.runs",
    "Aggregation": "combine.aggregate",
    "First": "combine.aggregate",
    "Max": "combine.aggregate",
    "Mean": "combine.aggregate",
    "Sum": "combine.aggregate",
    "Top": "combine.aggregate",
    "TopMean": "combine.aggregate",
    "reciprocal_rank_fusion": "combine.fusion",
    "score_fusion": "combine.fusion",
    "Interpolation": "combine.interpolate",
    "Pairwise": "combine.pairwise",
    "BirchbarkError": "errors",
    "InputError": "errors",
    "measure": "evaluate.measures",
    "Schema": "index.build_index",
    "build_index": "index.build_index",
    "Index": "index.index",
    "open_writer": "index.sharded_writer",
    "IndexWriter": "index.writer",
    "Answer": "pipeline.answers.answer",
    "Evidence": "pipeline.answers.answer",
    "Hit": "pipeline.answers.answer",
    "SearchStats": "pipeline.answers.answer",
    "Snippet": "pipeline.answers.answer",
    "BY_TERMS": "retrieve.vector_match",
    "CandidateScores": "retrieve.vector_match",
    "VectorMatch": "retrieve.vector_match",
    "Duo": "pipeline.settings.duo",
    "open_engine": "pipeline.open_engine",
    "PairScorer": "pipeline.pair_scorer",
    "RankedText": "pipeline.rank_texts",
    "highlight": "pipeline.rank_texts",
    "LoadedModels": "pipeline.loaded_models",
    "load_ranker": "pipeline.load_rankers",
    "rank": "pipeline.rank_texts",
    "Ranker": "pipeline.settings.ranker",
    "ReadingPlan": "pipeline.settings.reading_plan",
    "rerank": "pipeline.rerank",
    "search": "pipeline.search",
    "Searcher": "pipeline.searcher",
    "Document": "records",
    "Qrels": "records",
    "Query": "records",
    "Ranking": "records",
    "Run": "records",
    "Segment": "records",
    "BM25": "retrieve.bm25",
    "IndexEngine": "retrieve.engine",
    "FirstStage": "retrieve.first_stage",
    "rank_queries": "retrieve.first_stage",
    "rank_query": "retrieve.first_stage",
    "AND": "retrieve.match",
    "Match": "retrieve.match",
    "OR": "retrieve.match",
    "RM3": "retrieve.rm3",
    "TfIdf": "retrieve.tfidf",
    "load_duo_scorer": "score.duo",
    "load_scorer": "score.load_scorer",
    "Passages": "segment.passages",
    "Windows": "segment.windows",
}

# Written out, so that type checkers see it; a test holds it to the table above.
__all__ = [
    "AND",
    "BM25",
    "BY_TERMS",
    "OR",
    "RM3",
    "Aggregation",
    "Answer",
    "BirchbarkError",
    "CandidateScores",
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
    "LoadedModels",
    "Match",
    "Max",
    "Mean",
    "PairScorer",
    "Pairwise",
    "Passages",
    "Qrels",
    "Query",
    "RankedText",
    "Ranker",
    "Ranking",
    "ReadingPlan",
    "Run",
    "Schema",
    "SearchStats",
    "Searcher",
    "Segment",
    "Snippet",
    "Sum",
    "TfIdf",
    "Top",
    "TopMean",
    "VectorMatch",
    "Windows",
    "__version__",
    "build_index",
    "highlight",
    "load_duo_scorer",
    "load_ranker",
    "load_scorer",
    "measure",
    "open_engine",
    "open_writer",
    "rank",
    "rank_queries",
    "rank_query",
    "read_collection",
    "read_qrels",
    "read_queries",
    "read_run",
    "reciprocal_rank_fusion",
    "rerank",
    "score_fusion",
    "search",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'birchbark' has no attribute {name!r}")
    return getattr(import_module(f"birchbark.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
