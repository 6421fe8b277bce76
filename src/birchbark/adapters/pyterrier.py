"""How does a PyTerrier experiment retrieve and re-rank with birchbark? Two transformers.

bm25 = BirchbarkRetriever("notes.index", first_stage_only=True, top=1000)
bm25 >> BirchbarkReranker("notes.index")
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyterrier as pt

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Query, Ranking, Run

COLUMNS = ["qid", "query", "docno", "score", "rank"]


class BirchbarkRetriever(pt.Transformer):
    """Maps queries (qid, query) to ranked documents (qid, query, docno, score, rank from 0).

    Ties are broken as in trec_eval.

    Args:
        index: The directory of an index, to search with default settings; or a `Searcher`.
        top: Maximum number of documents per query. Defaults to 1000.
        first_stage_only: Whether to leave out re-ranking with BERT. Defaults to False.
    """

    def __init__(
        self,
        index: str | Path | Searcher,
        *,
        top: int = defaults.RETRIEVAL_DEPTH,
        first_stage_only: bool = False,
    ) -> None:
        self._searcher = _searcher(index, () if first_stage_only else defaults.MODEL)
        self._top, self._first_stage_only = top, first_stage_only

    def transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        """See PyTerrier."""
        _check_columns(topics, ("qid", "query"))
        rows: list[tuple[object, ...]] = []
        for qid, query in zip(topics["qid"], topics["query"], strict=True):
            rankers = None if self._first_stage_only else ...
            hits = self._searcher.search(query, self._top, rankers=rankers).hits
            rows += [
                (qid, query, hit.document.doc_id, hit.score, rank) for rank, hit in enumerate(hits)
            ]
        return _with_other_columns(pd.DataFrame(rows, columns=COLUMNS), topics, ["qid"])


class BirchbarkReranker(pt.Transformer):
    """Re-ranks documents (qid, query, docno, score), whose scores are used as first-stage scores.

    Documents below a ranker's depth keep their order below the re-ranked ones.

    Args:
        index: The directory of the index with the documents' texts, to re-rank with default
            settings; or a `Searcher`, whose rankers are used.
    """

    def __init__(self, index: str | Path | Searcher) -> None:
        self._searcher = _searcher(index, defaults.MODEL)

    def transform(self, ranked: pd.DataFrame) -> pd.DataFrame:
        """See PyTerrier."""
        _check_columns(ranked, ("qid", "query", "docno", "score"))
        rankings, queries = {}, {}
        for qid, rows in ranked.groupby("qid", sort=False):
            queries[qid] = Query(str(qid), rows["query"].iloc[0])
            rankings[str(qid)] = Ranking.of(rows["docno"].tolist(), rows["score"].tolist())
        first = Run(rankings, "pyterrier")
        run = rerank(self._searcher.index, first, list(queries.values()), self._searcher.rankers)
        frame = pd.DataFrame(_rows(queries.items(), run), columns=COLUMNS)
        return _with_other_columns(frame, ranked, ["qid", "docno"])


def _with_other_columns(frame: pd.DataFrame, source: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Add the other columns of `source`, which later stages may need, to `frame`."""
    others = [name for name in source.columns if name not in COLUMNS]
    if frame.empty:  # its key columns have no type to merge on
        return frame.reindex(columns=[*COLUMNS, *others])
    return frame.merge(source[[*keys, *others]].drop_duplicates(keys), on=keys, how="left")


def _rows(queries: Iterable[tuple[object, Query]], run: Run) -> list[tuple[object, ...]]:
    return [
        (qid, query.text, doc_id, score, rank)
        for qid, query in queries
        for rank, (doc_id, score) in enumerate(run.rankings[query.query_id])
    ]


def _searcher(index: str | Path | Searcher, model: str | tuple[Ranker, ...]) -> Searcher:
    return index if isinstance(index, Searcher) else Searcher(index, model)


def _check_columns(frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    if missing := [name for name in columns if name not in frame.columns]:
        raise InputError(
            f"the data frame has no column {missing[0]!r}",
            wanted=", ".join(columns),
            found=", ".join(map(str, frame.columns)),
        )
