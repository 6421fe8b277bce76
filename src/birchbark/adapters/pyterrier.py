"""How does a PyTerrier experiment search and re-rank by birchbark? Two transformers.

bm25 = BirchbarkRetriever("notes.index", first_stage_only=True, top=1000)
bm25 >> BirchbarkReranker("notes.index")
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyterrier as pt

from birchbark.checkpoint.named import DEFAULT_MODEL
from birchbark.errors import InputError
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Query, Ranking, Run

COLUMNS = ["qid", "query", "docno", "score", "rank"]


class BirchbarkRetriever(pt.Transformer):
    """Queries (qid, query) become ranked documents (qid, query, docno, score, rank from 0).

    index: a folder, or a Searcher with choices of one's own. first_stage_only: BM25 without BERT.
    Documents that are equal are in trec_eval's order.
    """

    def __init__(
        self, index: str | Path | Searcher, *, top: int = 1000, first_stage_only: bool = False
    ) -> None:
        self._searcher = _searcher(index, () if first_stage_only else DEFAULT_MODEL)
        self._top, self._first_stage_only = top, first_stage_only

    def transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        """See PyTerrier."""
        _check(topics, ("qid", "query"))
        rows: list[tuple[object, ...]] = []
        for qid, query in zip(topics["qid"], topics["query"], strict=True):
            rankers = None if self._first_stage_only else ...
            hits = self._searcher.search(query, self._top, rankers=rankers).hits
            rows += [(qid, query, h.document.doc_id, h.score, n) for n, h in enumerate(hits)]
        return _with_others(pd.DataFrame(rows, columns=COLUMNS), topics, ["qid"])


class BirchbarkReranker(pt.Transformer):
    """Ranked documents (qid, query, docno, score) are ranked anew, with their first-stage scores.

    Documents are read from the index; those below a ranker's depth keep their order, under the
    others.
    """

    def __init__(self, index: str | Path | Searcher) -> None:
        self._searcher = _searcher(index, DEFAULT_MODEL)

    def transform(self, ranked: pd.DataFrame) -> pd.DataFrame:
        """See PyTerrier."""
        _check(ranked, ("qid", "query", "docno", "score"))
        rankings, queries = {}, {}
        for qid, some in ranked.groupby("qid", sort=False):
            queries[qid] = Query(str(qid), some["query"].iloc[0])
            rankings[str(qid)] = Ranking.of(some["docno"].tolist(), some["score"].tolist())
        run = Run(rankings, "pyterrier")
        found = rerank(self._searcher.index, run, list(queries.values()), self._searcher.rankers)
        frame = pd.DataFrame(_rows(queries.items(), found), columns=COLUMNS)
        return _with_others(frame, ranked, ["qid", "docno"])


def _with_others(frame: pd.DataFrame, given: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """`frame` with the further columns of what was given, which later stages may need."""
    others = [name for name in given.columns if name not in COLUMNS]
    if frame.empty:  # whose keys are of no type
        return frame.reindex(columns=[*COLUMNS, *others])
    return frame.merge(given[[*keys, *others]].drop_duplicates(keys), on=keys, how="left")


def _rows(queries: Iterable[tuple[object, Query]], run: Run) -> list[tuple[object, ...]]:
    return [
        (qid, query.text, doc_id, score, place)
        for qid, query in queries
        for place, (doc_id, score) in enumerate(run.rankings[query.query_id])
    ]


def _searcher(index: str | Path | Searcher, model: str | tuple[Ranker, ...]) -> Searcher:
    return index if isinstance(index, Searcher) else Searcher(index, model)


def _check(frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    if missing := [name for name in columns if name not in frame.columns]:
        raise InputError(
            f"a frame without the column {missing[0]}",
            wanted=", ".join(columns),
            found=", ".join(map(str, frame.columns)),
        )
