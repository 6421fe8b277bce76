"""How are training pairs held in memory?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.records import Pair

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """Pairs as indices into distinct queries and distinct texts.

    A pair has one text, or the passages of a document.

    query: the index of each pair's query in `queries` (pairs,).
    text: the index of each passage in `texts` (passages,).
    starts: the passages of pair i are `text`[`starts`[i] : `starts`[i + 1]]; (pairs + 1,).
    grades: the grade of each pair (pairs,), float32.
    by_query: for each query, the indices of its pairs.
    doc_ids: the document of each pair (pairs,).
    """

    queries: tuple[str, ...]
    texts: tuple[str, ...]
    query: Indices
    text: Indices
    starts: Indices
    grades: NDArray[np.float32]
    by_query: tuple[Indices, ...]
    doc_ids: tuple[str, ...]

    @classmethod
    def of(cls, pairs: Iterable[Pair], documents: bool = False) -> PairTable:
        """Return the table of `pairs`, in their order.

        documents: whether all pairs of one query and document, even if they are not adjacent, are
        merged into one pair of several passages with the highest of their grades.
        """
        queries: dict[str, int] = {}
        texts: dict[str, int] = {}
        row_of: dict[object, int] = {}
        rows: list[tuple[int, int]] = []
        doc_ids, passages = [], []
        for number, pair in enumerate(pairs):
            query = queries.setdefault(pair.query, len(queries))
            text = texts.setdefault(pair.text, len(texts))
            key = (query, pair.doc_id) if documents else number
            if (row := row_of.setdefault(key, len(rows))) == len(rows):
                rows.append((query, pair.relevance))
                doc_ids.append(pair.doc_id)
                passages.append([text])
            else:
                rows[row] = query, max(pair.relevance, rows[row][1])
                passages[row].append(text)
        query_of, grades = np.array(rows, np.int64).reshape(-1, 2).T  # (pairs,) each
        starts = np.cumsum([0, *map(len, passages)])  # (pairs + 1,)
        text_of = np.array([text for row in passages for text in row], np.int64)  # (passages,)
        order = np.argsort(query_of, kind="stable")
        ends = np.cumsum(np.bincount(query_of, minlength=len(queries)))  # (queries,)
        return cls(
            tuple(queries),
            tuple(texts),
            query_of,
            text_of,
            starts,
            grades.astype(np.float32),
            tuple(np.split(order, ends[:-1])) if len(queries) else (),
            tuple(doc_ids),
        )

    def __len__(self) -> int:
        return len(self.query)

    def passages(self, pair: int) -> Indices:
        """Return the indices of a pair's passages, one or more, in `texts`."""
        return self.text[self.starts[pair] : self.starts[pair + 1]]
