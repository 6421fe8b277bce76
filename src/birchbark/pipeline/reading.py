"""What does the scorer read of a document? Its segments as token ids, cut so that each fits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from birchbark.pipeline.ranker import Ranker
from birchbark.records import Document, Ids, Segment
from birchbark.retrieve.engine import DocumentStore
from birchbark.segment.fit import fit
from birchbark.segment.limit import Limit, unread

REMEMBERED = 10_000_000  # characters; about 60 MB
TOGETHER = 8  # documents that are fetched and encoded at once


@dataclass(frozen=True, slots=True)
class Reading:
    """A document's segments and their token ids; unread: its tokens that a limit left out."""

    document: Document
    segments: tuple[Segment, ...]
    pieces: tuple[Ids, ...]
    unread: int

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.document.contents)


class Reader:
    """Readings of a store's documents, the last ones remembered: many queries find the same."""

    def __init__(self, store: DocumentStore, ranker: Ranker) -> None:
        self.documents = store.documents
        self._ranker = ranker
        self._known: OrderedDict[tuple[str, int], Reading] = OrderedDict()
        self._size = 0

    def read(self, doc_ids: Sequence[str], room: int) -> Iterator[Reading]:
        """A reading of each document, in order, as far as the caller asks; room: see Scorer."""
        waiting = iter(doc_ids)
        while some := list(islice(waiting, TOGETHER)):
            new = [doc_id for doc_id in some if (doc_id, room) not in self._known]
            fresh = {r.document.doc_id: r for r in self._readings(new, room)} if new else {}
            found = [fresh.get(d) or self._known[d, room] for d in some]
            for reading in found:
                self._remember(reading, room)
            yield from found

    def _remember(self, reading: Reading, room: int) -> None:
        key = (reading.document.doc_id, room)
        if key not in self._known:
            self._known[key] = reading
            self._size += reading.size
        self._known.move_to_end(key)
        while self._size > REMEMBERED:
            self._size -= self._known.popitem(last=False)[1].size

    def _readings(self, doc_ids: Sequence[str], room: int) -> list[Reading]:
        documents = self.documents(doc_ids)
        segments = [self._ranker.segmenter(document) for document in documents]
        scorer, limit = self._ranker.scorer, self._ranker.limit
        fitted = iter(
            fit([s for some in segments for s in some], room, scorer.encode, scorer.spans)
        )
        readings = []
        for document, whole in zip(documents, segments, strict=True):
            kept = limit.shortened(list(islice(fitted, len(whole))), scorer.spans)
            read = tuple(segment for segment, _ in kept)
            left = 0 if limit == Limit() else unread(document, whole, read, scorer.encode)
            readings.append(Reading(document, read, tuple(ids for _, ids in kept), left))
        return readings
