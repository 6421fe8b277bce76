"""How does a PyTerrier experiment index, retrieve and re-rank with birchbark?

index = BirchbarkIndex("notes.index").index(documents)
index.bm25() >> index.reranker()
any_retriever % 100 >> text_loader >> BirchbarkReranker()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from birchbark import defaults
from birchbark.arguments import iterated, mapping_of
from birchbark.errors import InputError, extra
from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.answers.answer import Hit
from birchbark.pipeline.answers.hit_fields import sentence_fields
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.rerank import RerankedQuery, rerank
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stage_options import StageOptions
from birchbark.record_values import ids_of, is_missing
from birchbark.records import Document, Query, Ranking, Run
from birchbark.retrieve.engine import DocumentStore, MemoryStore

with extra("pyterrier"):
    import pandas as pd
    import pyterrier as pt

RANKED = ["qid", "query", "docno", "score", "rank"]


class BirchbarkIndex(pt.Indexer):
    """An index in a directory, and the transformers that use it.

    Args:
        path: The directory of the index.
        schema: How documents are indexed. Defaults to `Schema()`: title and text as one field,
            by the English analyzer.
        overwrite: Whether an index that is already there may be replaced. Defaults to False.
    """

    def __init__(
        self, path: str | Path, *, schema: Schema = Schema(), overwrite: bool = False
    ) -> None:
        self.path, self.schema, self.overwrite = Path(path), schema, overwrite

    def index(self, iter: Iterable[Mapping[str, Any]], **kwargs: Any) -> BirchbarkIndex:
        """Index documents: dicts with `docno`, `text` or `title`, and any other fields.

        All of them are indexed, or none. Raises InputError for a document without id or text, for
        two with the same id, and if there is an index that may not be replaced.
        """
        if kwargs:
            raise InputError(
                f"unknown argument {next(iterated(kwargs.keys(), 'arguments'))!r} of index",
                remedy="BirchbarkIndex(path, schema=Schema(…)) says what is indexed",
            )
        documents = map(_document, iterated(iter, "documents"))
        build_index(documents, self.path, self.schema, replace=self.overwrite)
        return self

    def index_inputs(self) -> list[list[str]]:
        """See PyTerrier."""
        return [["docno", "text"]]

    def retriever(self, *, top: int = defaults.RETRIEVAL_DEPTH) -> BirchbarkRetriever:
        """Return a transformer that searches this index with default settings."""
        return BirchbarkRetriever(self.path, top=top)

    def bm25(self, *, top: int = defaults.RETRIEVAL_DEPTH) -> BirchbarkRetriever:
        """Return a transformer that ranks this index by BM25 alone."""
        return BirchbarkRetriever(self.path, top=top, first_stage_only=True)

    def reranker(self, *, top: int | None = None, evidence: bool = False) -> BirchbarkReranker:
        """Return a transformer that re-ranks documents of this index."""
        return BirchbarkReranker(self.path, top=top, evidence=evidence)

    def text_loader(
        self, fields: list[str] | str = "*", *, verbose: bool = False
    ) -> BirchbarkTextLoader:
        """Return a transformer that adds a document's fields; see `pt.text.get_text`.

        fields: names of fields, or `*` for those that models read: title, text and, if the index
        was built so, others. A document without a field has an empty string. verbose: accepted and
        ignored.
        """
        return BirchbarkTextLoader(self.path, fields)


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
        if not isinstance(index, Searcher):
            index = Searcher(index, () if first_stage_only else defaults.MODEL)
        self.index, self.top, self.first_stage_only = index, top, first_stage_only

    def __repr__(self) -> str:
        """Return what experiments call this system by default."""
        kind = "BM25" if self.first_stage_only else "BERT"
        return f"BirchbarkRetriever({self.index.directory.name}, {kind})"

    def transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        """See PyTerrier."""
        pt.validate.query_frame(topics, ["query"], context=self)
        if "query_toks" in topics.columns:
            raise InputError(
                "the column query_toks has no effect: queries are searched by their text",
                remedy="topics.drop(columns='query_toks')",
            )
        topics = topics.assign(qid=ids_of(topics["qid"]))
        if repeated := topics["qid"][topics["qid"].duplicated()].tolist():
            raise InputError(f"several topics have the qid {repeated[0]}", wanted="one")
        rows: list[tuple[object, ...]] = []
        rankers = () if self.first_stage_only else None
        for qid, query in zip(topics["qid"], topics["query"], strict=True):
            literal = self.index.parse(query, literal=True)  # topics have no operators
            hits = self.index.search(literal, self.top, rankers=rankers).hits
            ranked = list(_with_copies(hits))[: self.top]
            rows += [(qid, query, *found, rank) for rank, found in enumerate(ranked)]
        return _with_other_columns(pd.DataFrame(rows, columns=RANKED), topics, ["qid"])

    def fuse_rank_cutoff(self, k: int) -> BirchbarkRetriever:
        """Return a transformer that finds only the `k` best documents, without scoring others."""
        fused = copy(self)
        fused.top = min(k, self.top)
        return fused


def _with_copies(hits: Iterable[Hit]) -> Iterator[tuple[str, float]]:
    """Yield id and score of hits and their copies, which follow them.

    Scores fall, so that they give the order of the hits: those of several stages, and of documents
    that were not re-ranked, can be higher than those above them.
    """
    lowest, least = np.float32(np.inf), np.float32(-np.inf)  # in which tools compare them
    for hit in hits:
        for doc_id in (hit.document.doc_id, *hit.copies):
            lowest = min(score := np.float32(hit.score), np.nextafter(lowest, least))
            yield doc_id, hit.score if lowest == score else float(lowest)


class BirchbarkReranker(pt.Transformer):
    """Re-ranks documents (qid, query, docno, score), whose scores are used as first-stage scores.

    Documents below a ranker's depth keep their order below the re-ranked ones.

    Args:
        index: The directory of the index with the documents' texts, or a `Searcher`, whose rankers
            are used. Defaults to None: the texts are columns of the frame, and the segments that
            are read are chosen without idf, which the frame does not tell.
        model: The name or directory of a model, or a `Ranker`. Defaults to the default models.
        text_fields: Without an index: the columns with title and text; those that a frame lacks
            are left out, but not all. Defaults to `title` and `text`.
        first_stage_scale: How first-stage scores are scaled: `max`, divided by the highest, or
            `minmax`, for scores below 0. A `Ranker` and a `Searcher` state it themselves. Defaults
            to `max`.
        top: Maximum number of documents per query; documents that cannot be among them are not
            scored. Defaults to None: all.
        evidence: Whether to add a column `evidence`: a list of the segments that a document's
            score comes from, best first, as dicts with `text`, `start`, `end` (offsets in title and
            text, which are joined by a line break), `score` and `weight`. Defaults to False.
    """

    def __init__(
        self,
        index: str | Path | Searcher | None = None,
        *,
        model: str | Path | Ranker = defaults.MODEL,
        text_fields: Sequence[str] | str = ("title", "text"),
        first_stage_scale: str = defaults.FIRST_STAGE_SCALE,
        top: int | None = None,
        evidence: bool = False,
    ) -> None:
        self.model, self.first_stage_scale = model, first_stage_scale
        self.text_fields = (text_fields,) if isinstance(text_fields, str) else tuple(text_fields)
        self.top, self.evidence = top, evidence
        if isinstance(index, Searcher):
            if (model, first_stage_scale) != (defaults.MODEL, defaults.FIRST_STAGE_SCALE):
                raise InputError(
                    "model and first_stage_scale have no effect beside a Searcher",
                    remedy="Searcher(index, model) chooses them",
                )
            self.index: Searcher | None = index
            self._rankers = index.rankers
            return
        if not isinstance(model, Ranker):
            options = StageOptions(model=str(model), first_stage_scale=first_stage_scale)
            model = make_ranker(options, LoadedModels(), auto_int8=True)
        self.index = Searcher(index, model) if index else None
        self._rankers = (model,)

    def __repr__(self) -> str:
        """Return what experiments call this system by default."""
        read = self.index.directory.name if self.index else ", ".join(self.text_fields)
        return f"BirchbarkReranker({read})"

    def transform(self, ranked: pd.DataFrame) -> pd.DataFrame:
        """See PyTerrier."""
        columns = () if self.index else _text_columns(self.text_fields, ranked)
        pt.validate.result_frame(ranked, ["query", "score", *columns], context=self)
        ranked = ranked.assign(qid=ids_of(ranked["qid"]), docno=ids_of(ranked["docno"]))
        texts = ranked.groupby("qid", sort=False)["query"].nunique()
        if several := [qid for qid, count in texts.items() if count > 1]:
            raise InputError(f"several queries have the qid {several[0]}", wanted="one")
        queries = list(ranked.groupby("qid", sort=False))
        if self.index:
            frames = self._rerank(self.index.index, queries)
        else:  # a document's text may depend on the query
            frames = [
                frame
                for qid, rows in queries
                for frame in self._rerank(_store_of(rows, columns), [(qid, rows)])
            ]
        names = [*RANKED, "evidence"] if self.evidence else RANKED
        frame = pd.concat(frames) if frames else pd.DataFrame(columns=names)
        return _with_other_columns(frame.reset_index(drop=True), ranked, ["qid", "docno"])

    def _rerank(
        self, store: DocumentStore, queries: Sequence[tuple[object, pd.DataFrame]]
    ) -> list[pd.DataFrame]:
        """Re-rank the documents of some queries; a frame for each."""
        texts = {str(qid): rows["query"].iloc[0] for qid, rows in queries}
        rankings = {
            str(qid): Ranking.of(rows["docno"].tolist(), rows["score"].tolist())
            for qid, rows in queries
        }
        evidence: dict[str, dict[str, list[dict[str, Any]]]] = {}

        def keep(query: RerankedQuery) -> None:
            if self.evidence:
                evidence[query.query_id] = {
                    hit.document.doc_id: [
                        {**sentence_fields(one), "weight": one.weight} for one in hit.segments
                    ]
                    for hit in query.hits()
                }

        run = rerank(
            store,
            Run(rankings, "first"),
            [Query(query_id, text) for query_id, text in texts.items()],
            self._rankers,
            top=self.top,
            on_query=keep,
        )
        frames = []
        for qid, _ in queries:
            doc_ids, scores = zip(*run.rankings[str(qid)], strict=True)
            columns = {
                "qid": qid,
                "query": texts[str(qid)],
                "docno": doc_ids,
                "score": scores,
                "rank": range(len(doc_ids)),
            }
            if self.evidence:
                of_query = evidence[str(qid)]
                columns["evidence"] = [of_query.get(doc_id, []) for doc_id in doc_ids]
            frames.append(pd.DataFrame(columns))
        return frames

    def fuse_rank_cutoff(self, k: int) -> BirchbarkReranker:
        """Return a transformer that finds only the `k` best documents, without scoring others."""
        fused = copy(self)
        fused.top = k if self.top is None else min(k, self.top)
        return fused


class BirchbarkTextLoader(pt.Transformer):
    """Adds the texts of an index's documents to a frame with the column docno.

    Args:
        index: The directory of the index.
        fields: Names of fields, or `*` for those that models read.
    """

    def __init__(self, index: str | Path, fields: Sequence[str] | str = "*") -> None:
        self._searcher = Searcher(index, ())
        self.index = index
        self.fields = [fields] if isinstance(fields, str) and fields != "*" else fields

    def __repr__(self) -> str:
        """Return what pipelines show."""
        return f"BirchbarkTextLoader({Path(self.index).name})"

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """See PyTerrier."""
        pt.validate.columns(frame, includes=["docno"], context=self)
        documents = self._searcher.documents(frame["docno"].tolist())
        read = ("title", *self._searcher.index.read_fields)
        fields = read if self.fields == "*" else self.fields
        return frame.assign(
            **{name: [d.fields.get(name, "") for d in documents] for name in fields}
        )


def _document(record: Mapping[str, Any]) -> Document:
    """Return the document in a record; its id is `docno`."""
    others = {
        name: value for name, value in mapping_of(record, "a record").items() if name != "docno"
    }
    if not is_missing(others.get("id")) and others["id"] != record.get("docno"):
        raise InputError(
            "a document has an id beside its docno", found=f"{others['id']}, {record.get('docno')}"
        )
    return Document.from_dict(others | {"id": record.get("docno")})


def _store_of(rows: pd.DataFrame, columns: Sequence[str]) -> MemoryStore:
    """Return the documents of rows; the last column is the text, those before it are the title."""
    *titles, text = columns
    documents = {}
    for row in rows.to_dict("records"):
        for name in columns:
            if not isinstance(row[name], str):
                raise InputError(
                    f"column {name!r}: not a string",
                    where=f"document {row['docno']}",
                    found=f"{row[name]!r}"[:80],
                )
        fields = {"title": " ".join(row[name] for name in titles), "text": row[text]}
        documents[row["docno"]] = Document(row["docno"], {k: v for k, v in fields.items() if v})
    return MemoryStore(documents)


def _text_columns(names: Sequence[str], frame: pd.DataFrame) -> list[str]:
    """Return the columns to read: those that the frame has, the last one in any case."""
    return [name for name in names if name in frame.columns or name == names[-1]]


def _with_other_columns(frame: pd.DataFrame, source: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Add the other columns of `source`, which later stages may need, to `frame`."""
    others = [name for name in source.columns if name not in frame.columns]
    if frame.empty:  # its key columns have no type to merge on
        return frame.reindex(columns=[*frame.columns, *others])
    return frame.merge(source[[*keys, *others]].drop_duplicates(keys), on=keys, how="left")
