"""Which documents have vectors close to the query's, by exact search or with HNSW graphs?

An attachment of the index stores any number of vectors per document; a document is as close to the
query as its closest vector. The last bits of inner products depend on how many are computed at
once. Documents within `MARGIN` of the last one are therefore returned too, and the caller can score
them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.index.attachment_reader import Attachment, Numbers, RowFolder
from birchbark.index.index import Index
from birchbark.records import Float32s
from birchbark.retrieve.hnsw import HnswGraph, open_graphs
from birchbark.retrieve.match import ALL, Selection

SPARE = 16  # additional rows requested from a graph
MARGIN = 1e-5  # more than the cosine of a pair can differ between two blocks

Masks = Sequence[NDArray[np.bool_]]  # for each part, (documents,)
InnerProducts = Callable[[Mapping[str, NDArray[Any]], Float32s], Float32s]


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """The document vectors that an index stores.

    attachment: the attachment that stores them. inner_products: stored rows and a query (hidden,) →
    their inner products (rows,). graphs: folder of rows → its graph; folders without a graph are
    searched exactly.
    """

    index: Index
    attachment: Attachment
    inner_products: InnerProducts
    graphs: Mapping[Path, HnswGraph]

    @classmethod
    def of(
        cls, index: Index, attachment: Attachment, inner_products: InnerProducts
    ) -> StoredVectors:
        """Open the attachment with all its graphs."""
        return cls(index, attachment, inner_products, open_graphs(attachment))

    @property
    def without_graph(self) -> int:
        """Number of vectors that each search compares with the query, one by one."""
        folders = [folder for of_part in self.attachment.folders for folder in of_part]
        return sum(len(f.values["vectors"]) for f in folders if f.path not in self.graphs)

    def nearest_documents(
        self, query: Float32s, allowed: Masks, count: int, *, exactly: bool = False
    ) -> list[NDArray[np.bool_]]:
        """Return the `count` nearest of the `allowed` documents, and any others within `MARGIN`.

        query: unit vector, (hidden,). exactly: compare all vectors instead of using graphs, which
        may miss a few documents. Returns a mask for each part, bool (documents,).
        """
        graphs, cosines_of_parts = {} if exactly else self.graphs, []
        for position, mask in enumerate(allowed):
            cosines = np.full(len(mask), -np.inf, np.float32)  # (documents,)
            for folder in self.attachment.folders[position]:
                if graph := graphs.get(folder.path):
                    self._search_graph(graph, folder, query, cosines, mask, count)
                else:
                    self._search_exactly(folder, query, cosines)
            cosines[~mask] = -np.inf
            cosines_of_parts.append(cosines)
        threshold = _threshold(np.concatenate([*cosines_of_parts, np.empty(0, np.float32)]), count)
        return [cosines >= threshold for cosines in cosines_of_parts]

    def _search_exactly(self, folder: RowFolder, query: Float32s, cosines: Float32s) -> None:
        """Set the entries of `cosines` (documents,) for the documents of `folder`."""
        with folder.reporting_damage():
            starts = _vector_starts(folder)
            nonempty = np.flatnonzero(np.diff(starts))  # documents
            if len(nonempty):
                products = self.inner_products(folder.values, query)  # (rows,)
                cosines[folder.docs[nonempty]] = np.maximum.reduceat(products, starts[nonempty])

    def _search_graph(
        self,
        graph: HnswGraph,
        folder: RowFolder,
        query: Float32s,
        cosines: Float32s,
        allowed: NDArray[np.bool_],
        count: int,
    ) -> None:
        """Set the entries of `cosines` for the documents whose rows the graph returns.

        Requests a few more rows than needed, since a graph's cosines are rounded, and doubles the
        number until the rows cover `count` allowed documents. Once more than half of all rows would
        be requested, the folder is searched exactly instead.
        """
        with folder.reporting_damage():
            starts = _vector_starts(folder)
            rows = int(starts[-1])
            requested = SPARE + count * rows // max(1, len(folder))
            while True:
                if requested * 2 > rows:
                    return self._search_exactly(folder, query, cosines)
                nearest = graph.nearest(query, requested)  # row numbers
                owner = np.searchsorted(starts, nearest, side="right") - 1
                docs = folder.docs[owner]
                if len(np.unique(docs[allowed[docs]])) >= count:
                    break
                requested *= 2
            rows_found = {name: values[nearest] for name, values in folder.values.items()}
            np.maximum.at(cosines, docs, self.inner_products(rows_found, query))
        return None


def _vector_starts(folder: RowFolder) -> Numbers:
    """Return the number of each document's first vector in a folder, and their total.

    The shape is (documents + 1,).
    """
    column = list(folder.values).index("vectors")
    starts: Numbers = folder.starts[:, column].astype(np.int64)
    return starts


def filter_masks(index: Index, filters: Mapping[str, str]) -> list[NDArray[np.bool_]]:
    """Return for each part which live documents have the values in `filters`, bool (documents,)."""
    return live_masks(index, Selection(ALL, (), tuple(filters.items())))


def live_masks(index: Index, selection: Selection) -> list[NDArray[np.bool_]]:
    """Return for each part which live documents a selection does not exclude, (documents,)."""
    masks = []
    for part in index.parts:
        with part.reporting_damage():
            excluded = selection.excluded(index, part)
        masks.append(~excluded if len(excluded) else np.ones(part.documents, bool))
    return masks


def _threshold(cosines: Float32s, count: int) -> float:
    """Return the count-th best cosine minus `MARGIN`.

    Returns the lowest finite float if there are no more than `count` cosines above −inf.
    """
    cosines = cosines[cosines > -np.inf]
    if len(cosines) <= count:
        return float(np.finfo(np.float32).min)
    return float(np.partition(cosines, len(cosines) - count)[len(cosines) - count]) - MARGIN
