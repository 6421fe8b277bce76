"""How are query–document cosines computed for every layer and pooling?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from birchbark import Document, Index, InputError, Qrels, Query, Run
from birchbark.checkpoint.heads import Pooling
from birchbark.records import Float32s, Ranking
from birchbark.segment.by_name import Segmenter
from birchbark_studies.layer_encoder import LayerEncoder
from birchbark_studies.workspace import Workspace

BLOCK_DOCUMENTS = 256  # documents encoded at a time

CandidateIds = Callable[[str], frozenset[str]]  # query_id → doc_ids that may be ranked


@dataclass(frozen=True, slots=True, eq=False)
class Cosines:
    """The cosine of every query with every document that has the field.

    Attributes:
        values: Float32 (poolings, queries, documents).
        poolings, queries, doc_ids: The labels of the three axes; queries are query ids.
    """

    values: Float32s
    poolings: tuple[Pooling, ...]
    queries: tuple[str, ...]
    doc_ids: tuple[str, ...]

    def of(self, pooling: Pooling) -> Float32s:
        """Return the cosines for one pooling, (queries, documents)."""
        values: Float32s = self.values[self.poolings.index(pooling)]
        return values

    def run(
        self, pooling: Pooling, depth: int, tag: str, candidates: CandidateIds | None = None
    ) -> Run:
        """Rank the `depth` nearest documents for each query; negative cosines count as 0.

        candidates: returns the documents that may be ranked for a query; None to rank all.
        """
        rankings = {}
        for query_id, scores in zip(self.queries, self.of(pooling), strict=True):
            ids = candidates(query_id) if candidates else None
            columns = [d for d, doc_id in enumerate(self.doc_ids) if ids is None or doc_id in ids]
            doc_ids = [self.doc_ids[d] for d in columns]
            rankings[query_id] = Ranking.of(doc_ids, np.clip(scores[columns], 0, 1), depth)
        return Run(rankings, tag)


def compute_cosines(
    encoder: LayerEncoder, index: Index, segmenter: Segmenter, queries: Sequence[Query]
) -> Cosines:
    """Compute the cosine of each query with each document of `index`.

    A document's segments are joined into one text. Documents without segments are left out.
    """
    query_vectors = encoder.embed(  # (queries, poolings, hidden)
        [query.text for query in queries], queries=True
    )
    blocks, doc_ids = [], list[str]()
    documents = iter(index)
    while block := list(islice(documents, BLOCK_DOCUMENTS)):
        texts = {d.doc_id: text for d in block if (text := _text(d, segmenter))}
        if texts:
            vectors = encoder.embed(list(texts.values()))  # (documents, poolings, hidden)
            blocks.append(np.einsum("qph,dph->pqd", query_vectors, vectors, optimize=True))
            doc_ids += texts
    shape = (len(encoder.poolings), len(queries), 0)
    values = np.concatenate([np.empty(shape, np.float32), *blocks], axis=2)
    names = tuple(query.query_id for query in queries)
    return Cosines(values, encoder.poolings, names, tuple(doc_ids))


def note_omissions(
    workspace: Workspace, index: Index, cosines: Cosines, encoder: LayerEncoder
) -> None:
    """Report how many documents lack the field and how many texts were truncated.

    Resets the encoder's count of truncated texts.
    """
    if missing := len(index) - len(cosines.doc_ids):
        workspace.progress(f"note: {missing:,} documents lack the field and are left out")
    if encoder.truncated_count:
        workspace.progress(
            f"note: {encoder.truncated_count:,} texts are truncated to the length of one input"
        )
        encoder.truncated_count = 0


def _text(document: Document, segmenter: Segmenter) -> str:
    return " ".join(segment.text for segment in segmenter(document))


@dataclass(frozen=True, slots=True, eq=False)
class JudgedPairs:
    """Query–document pairs. query, document: their indices in `Cosines`, (n,)."""

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    relevant: NDArray[np.bool_]

    @classmethod
    def of(cls, cosines: Cosines, qrels: Qrels, others: Mapping[str, Sequence[str]]) -> JudgedPairs:
        """Collect the judged pairs, and the pairs in `others`, not relevant if unjudged.

        others: query_id → doc_ids. Raises InputError if no such document has the field.
        """
        column = {doc_id: number for number, doc_id in enumerate(cosines.doc_ids)}
        rows = []
        for number, query_id in enumerate(cosines.queries):
            grades = {**dict.fromkeys(others.get(query_id, ()), 0), **qrels.grades[query_id]}
            rows += [
                (number, column[d], g >= qrels.relevant) for d, g in grades.items() if d in column
            ]
        if not rows:
            raise InputError("no document that is judged or retrieved by BM25 has the field")
        query, document, relevant = map(np.array, zip(*rows, strict=True))
        return cls(query, document, relevant.astype(bool))

    def scores(self, values: Float32s) -> Float32s:
        """Return the cosines of the pairs, (n,). values: (queries, documents)."""
        return values[self.query, self.document]
