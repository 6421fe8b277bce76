"""What do the cosines of every layer and pooling say of a collection's queries and documents?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.heads import Pooling
from birchbark.errors import InputError
from birchbark.index.reader import Index
from birchbark.records import Document, Float32s, Qrels, Query, Ranking, Run
from birchbark.score.layers import LayerEncoder
from birchbark.segment.named import Segmenter
from birchbark.study.bench import Bench

TOGETHER = 256  # documents that are read at a time

Among = Callable[[str], frozenset[str]]


@dataclass(frozen=True, slots=True, eq=False)
class Cosines:
    """Of all queries with all documents that have the field.

    values: float32 (poolings, queries, documents). poolings, queries, doc_ids: what its axes are.
    """

    values: Float32s
    poolings: tuple[Pooling, ...]
    queries: tuple[str, ...]
    doc_ids: tuple[str, ...]

    def of(self, pooling: Pooling) -> Float32s:
        """Those of one pooling, (queries, documents)."""
        values: Float32s = self.values[self.poolings.index(pooling)]
        return values

    def run(self, pooling: Pooling, depth: int, tag: str, among: Among | None = None) -> Run:
        """The nearest documents of each query. among: query_id → which may be ranked; None: all."""
        rankings = {}
        for query_id, scores in zip(self.queries, self.of(pooling), strict=True):
            may = among(query_id) if among else None
            some = [d for d, doc_id in enumerate(self.doc_ids) if may is None or doc_id in may]
            ids = [self.doc_ids[d] for d in some]
            rankings[query_id] = Ranking.of(ids, np.clip(scores[some], 0, 1), depth)
        return Run(rankings, tag)


def cosines(
    encoder: LayerEncoder, index: Index, segmenter: Segmenter, queries: Sequence[Query]
) -> Cosines:
    """Cosines of queries with what `segmenter` makes of each document: one text, or none."""
    asked = encoder.embed([query.text for query in queries])
    blocks, doc_ids = [], list[str]()
    documents = iter(index)
    while some := list(islice(documents, TOGETHER)):
        texts = {d.doc_id: text for d in some if (text := _text(d, segmenter))}
        if texts:
            vectors = encoder.embed(list(texts.values()))
            blocks.append(np.einsum("qph,dph->pqd", asked, vectors, optimize=True))
            doc_ids += texts
    shape = (len(encoder.poolings), len(queries), 0)
    values = np.concatenate([np.empty(shape, np.float32), *blocks], axis=2)
    names = tuple(query.query_id for query in queries)
    return Cosines(values, encoder.poolings, names, tuple(doc_ids))


def tell_left(bench: Bench, index: Index, found: Cosines, encoder: LayerEncoder) -> None:
    """Say which documents have no vector, and which texts one of their beginning."""
    if without := len(index) - len(found.doc_ids):
        bench.tell(f"note: {without:,} documents lack the field, and are left out")
    if encoder.cut:
        bench.tell(f"note: {encoder.cut:,} texts lose their end: one input does not hold them")
        encoder.cut = 0


def _text(document: Document, segmenter: Segmenter) -> str:
    return " ".join(segment.text for segment in segmenter(document))


@dataclass(frozen=True, slots=True, eq=False)
class JudgedPairs:
    """Pairs of a query and a document, by their places in `Cosines`. relevant: (n,) of each."""

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    relevant: NDArray[np.bool_]

    @classmethod
    def of(cls, found: Cosines, qrels: Qrels, others: Mapping[str, Sequence[str]]) -> JudgedPairs:
        """All that is judged, and `others`, of which those that nobody judged are not relevant."""
        place = {doc_id: number for number, doc_id in enumerate(found.doc_ids)}
        rows = []
        for number, query_id in enumerate(found.queries):
            grades = {**dict.fromkeys(others.get(query_id, ()), 0), **qrels.grades[query_id]}
            rows += [(number, place[d], g > 0) for d, g in grades.items() if d in place]
        if not rows:
            raise InputError("no document that is judged, or found by BM25, has the field")
        query, document, relevant = (np.array(column) for column in zip(*rows, strict=True))
        return cls(query, document, relevant.astype(bool))

    def scores(self, values: Float32s) -> Float32s:
        """Theirs, of cosines (queries, documents)."""
        return values[self.query, self.document]
