"""What does the scorer read of a document? Its segments as token ids, cut so that each fits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from birchbark.pipeline.kept import Kept
from birchbark.records import Document, Float32s, Ids, Segment
from birchbark.retrieve.engine import DocumentStore
from birchbark.score.scorer import Scorer
from birchbark.segment.fit import fit
from birchbark.segment.limit import Limit, unread
from birchbark.segment.named import Segmenter

REMEMBERED = 10_000_000  # characters; about 60 MB
TOGETHER = 8  # documents that are fetched and encoded at once
CHARACTERS_A_TOKEN = 5


@dataclass(frozen=True, slots=True)
class Reading:
    """Token ids of a document's segments. size: about its characters. unread: tokens left out."""

    doc_id: str
    pieces: tuple[Ids, ...]
    size: int
    unread: int = 0

    def only(self, at: NDArray[np.intp]) -> Reading:
        """The segments at these positions alone."""
        return replace(self, pieces=tuple(self.pieces[i] for i in at))


@dataclass(frozen=True, slots=True)
class Cut:
    """A document with its segments, and their reading in the same order."""

    document: Document
    segments: tuple[Segment, ...]
    reading: Reading


class Reader:
    """Reads a store's documents as one scorer does; the last ones are remembered.

    Threads may share one.

    scorer: the one given, or that which rounds vectors as the store keeps them.
    """

    def __init__(
        self, store: DocumentStore, scorer: Scorer, segmenter: Segmenter, limit: Limit
    ) -> None:
        """Find what the store keeps (kept.py); nothing of it is used under a limit."""
        self.documents, self._segmenter, self._limit = store.documents, segmenter, limit
        self._kept = Kept(store, scorer, segmenter) if limit == Limit() else None
        self.scorer = self._kept.scorer if self._kept else scorer
        self._known: OrderedDict[tuple[str, int], Cut] = OrderedDict()
        self._size = 0
        self._remembering = Lock()  # not held while documents are cut

    def scores(self, query: str, doc_ids: Sequence[str]) -> list[Float32s | None]:
        """Scores of each document's segments, where vectors are kept of them."""
        return self._kept.scores(query, doc_ids) if self._kept else [None] * len(doc_ids)

    def read(
        self, doc_ids: Sequence[str], room: int, together: int = TOGETHER
    ) -> Iterator[Reading]:
        """A reading of each document, in order, as far as the caller asks; room: see Scorer.

        together: how many are cut at once, and so before the first is given.
        """
        waiting = iter(doc_ids)
        while some := list(islice(waiting, together)):
            kept = self._kept.pieces(some, room) if self._kept else [None] * len(some)
            rest = iter(self._cuts([d for d, p in zip(some, kept, strict=True) if p is None], room))
            for doc_id, pieces in zip(some, kept, strict=True):
                if pieces is None:
                    yield next(rest).reading
                else:
                    size = CHARACTERS_A_TOKEN * sum(map(len, pieces))
                    yield Reading(doc_id, pieces, size)

    def shown(
        self, doc_ids: Sequence[str], room: int
    ) -> Iterator[tuple[Document, Sequence[Segment]]]:
        """Each document with the segments that `read` gives token ids of, and `scores` scores."""
        documents = self.documents(doc_ids)
        kept = self._kept.segments(documents, room) if self._kept else [None] * len(documents)
        for document, segments in zip(documents, kept, strict=True):
            if segments is None:
                yield document, self._cuts([document.doc_id], room)[0].segments
            else:
                yield document, segments

    def _cuts(self, doc_ids: Sequence[str], room: int) -> list[Cut]:
        """Each document cut, or remembered."""
        # Found once: another thread may forget them meanwhile.
        known = {doc_id: cut for doc_id in doc_ids if (cut := self._known.get((doc_id, room)))}
        new = [doc_id for doc_id in doc_ids if doc_id not in known]
        if new:
            known |= {cut.document.doc_id: cut for cut in self._cut_anew(new, room)}
        cuts = [known[doc_id] for doc_id in doc_ids]
        with self._remembering:
            for cut in cuts:
                self._remember(cut, room)
        return cuts

    def _remember(self, cut: Cut, room: int) -> None:
        key = (cut.document.doc_id, room)
        if key not in self._known:
            self._known[key] = cut
            self._size += cut.reading.size
        self._known.move_to_end(key)
        while self._size > REMEMBERED:
            self._size -= self._known.popitem(last=False)[1].reading.size

    def _cut_anew(self, doc_ids: Sequence[str], room: int) -> Iterator[Cut]:
        documents = self.documents(doc_ids)
        segments = [self._segmenter(document) for document in documents]
        encode, spans = self.scorer.encode, self.scorer.spans
        fitted = iter(fit([s for some in segments for s in some], room, encode, spans))
        for document, whole in zip(documents, segments, strict=True):
            kept = self._limit.shortened(list(islice(fitted, len(whole))), spans)
            read = tuple(segment for segment, _ in kept)
            left = 0 if self._limit == Limit() else unread(document, whole, read, encode)
            pieces = tuple(ids for _, ids in kept)
            reading = Reading(document.doc_id, pieces, len(document.contents), left)
            yield Cut(document, read, reading)
