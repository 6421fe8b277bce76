"""Which documents have vectors near a query's? Exactly, or by graphs where there are some.

Vectors lie in an attachment of the index, some for each document; a document is as near as the
nearest of its own. What is found here is found by products of whole blocks, whose last bits depend
on their company: `MARGIN` more is kept than was asked for, for the caller to score anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.index.attachment_reader import AttachedRows, Attachment, Numbers, reading
from birchbark.index.reader import Index
from birchbark.records import Float32s
from birchbark.retrieve.graphs import Graph, Unpack, open_graphs
from birchbark.retrieve.match import ALL, Selection

ROWS = 1 << 14  # multiplied at a time
SPARE = 16  # rows that a graph is asked for besides
MARGIN = 1e-5  # of a cosine: more than products of blocks and of single vectors differ by

Allowed = Sequence[NDArray[np.bool_]]  # as Masks
Masks = list[NDArray[np.bool_]]  # of each part, (documents,)


@dataclass(frozen=True, slots=True)
class KeptVectors:
    """The vectors of an index's documents.

    unpack: makes unit vectors, float32 (n, hidden), of rows as they are kept. graphs: folder of
    rows → its graph; folders without one are read whole.
    """

    index: Index
    attachment: Attachment
    unpack: Unpack
    graphs: Mapping[Path, Graph]

    @classmethod
    def of(cls, index: Index, attachment: Attachment, unpack: Unpack) -> KeptVectors:
        """With the graphs that there are."""
        return cls(index, attachment, unpack, open_graphs(attachment))

    def near(
        self, query: Float32s, allowed: Allowed, count: int, *, exactly: bool = False
    ) -> Masks:
        """The `count` nearest documents of those `allowed`, and what is within `MARGIN` of them.

        By graphs where there are some, and then a few may be missed, unless `exactly`.
        """
        graphs, scores = {} if exactly else self.graphs, []
        for position, may in enumerate(allowed):
            found = np.full(len(may), -np.inf, np.float32)
            for held in self.attachment.held[position]:
                if graph := graphs.get(held.folder):
                    self._follow(graph, held, query, found, may, count)
                else:
                    self._read(held, query, found)
            found[~may] = -np.inf
            scores.append(found)
        least = _least(np.concatenate([*scores, np.empty(0, np.float32)]), count)
        return [found >= least for found in scores]

    def _read(self, held: AttachedRows, query: Float32s, found: Float32s) -> None:
        """Raise `found` (documents,) to the cosines of a folder's documents."""
        with reading(held.folder):
            starts = self._starts(held)
            for begin, end in _blocks(starts):
                a, b = int(starts[begin]), int(starts[end])
                rows = self.unpack({name: values[a:b] for name, values in held.values.items()})
                own = np.flatnonzero(np.diff(starts[begin : end + 1])) + begin
                if len(own):
                    best = np.maximum.reduceat(rows @ query, starts[own] - a)
                    found[held.docs[own]] = best

    def _follow(
        self,
        graph: Graph,
        held: AttachedRows,
        query: Float32s,
        found: Float32s,
        may: NDArray[np.bool_],
        count: int,
    ) -> None:
        """As `_read`, for the documents of the rows that the graph says are nearest.

        Asks for some more than `count`, since a graph rounds; and for more, until they are of so
        many documents that may be found. Where that is half of all rows, all are read.
        """
        with reading(held.folder):
            starts = self._starts(held)
            rows = int(starts[-1])
            asked = SPARE + count * rows // max(1, len(held))
            while True:
                if asked * 2 > rows:
                    return self._read(held, query, found)
                places = graph.nearest(query, asked)
                owner = np.searchsorted(starts, places, side="right") - 1
                docs = held.docs[owner]
                if len(np.unique(docs[may[docs]])) >= count:
                    break
                asked *= 2
            near = self.unpack({name: values[places] for name, values in held.values.items()})
            np.maximum.at(found, docs, near @ query)
        return None

    def _starts(self, held: AttachedRows) -> Numbers:
        """Where the vectors of each document of a folder start, and an end."""
        column = list(held.values).index("vectors")
        starts: Numbers = held.starts[:, column].astype(np.int64)
        return starts


def filtered(index: Index, filters: Mapping[str, str]) -> Masks:
    """Of each part, which documents are not deleted and have these values."""
    selection, found = Selection(ALL, (), filters), []
    for part in index.parts:
        with part.reading():
            excluded = selection.excluded(index, part)
        found.append(~excluded if len(excluded) else np.ones(part.documents, bool))
    return found


def _blocks(starts: Numbers) -> Iterator[tuple[int, int]]:
    """First and last + 1 of documents whose rows are about `ROWS`."""
    begin, documents = 0, len(starts) - 1
    while begin < documents:
        end = int(np.searchsorted(starts, starts[begin] + ROWS, side="right")) - 1
        end = min(documents, max(begin + 1, end))
        yield begin, end
        begin = end


def _least(scores: Float32s, count: int) -> float:
    """What a document must reach to be among the `count` best, less `MARGIN`; above −inf."""
    scores = scores[scores > -np.inf]
    if len(scores) <= count:
        return float(np.finfo(np.float32).min)
    return float(np.partition(scores, len(scores) - count)[len(scores) - count]) - MARGIN
