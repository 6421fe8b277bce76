"""What is left unread where someone asks to read only a part of each document?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from birchbark.errors import InputError
from birchbark.records import Document, Segment
from birchbark.segment.fit import Encode, Encoded, Spans


@dataclass(frozen=True, slots=True)
class Limit:
    """How much is read: all of it, unless a number says otherwise.

    segments: the first so many of a document (chunks of over-long ones count as segments). length:
    the first so many tokens of each segment.
    """

    segments: int | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        for what, value in (("segments", self.segments), ("length", self.length)):
            if value is not None and value < 1:
                raise InputError(
                    f"limit of {what} is out of range", wanted="1 or more", found=str(value)
                )

    def shortened(self, fitted: Sequence[list[Encoded]], spans: Spans) -> list[Encoded]:
        """What is read of a document's segments, as `fit` gives them."""
        kept = [
            one
            for chunks in fitted
            for one in (chunks if self.length is None else _cut(chunks, self.length, spans))
        ]
        return kept[: self.segments]


def _cut(chunks: list[Encoded], length: int, spans: Spans) -> list[Encoded]:
    """The first `length` tokens of one segment, which may lie in several chunks."""
    kept: list[Encoded] = []
    for segment, ids in chunks:
        if len(ids) > length:
            end = spans(segment.text)[length - 1][1]
            finish = max(segment.start, segment.end - (len(segment.text) - end))
            segment = Segment(segment.doc_id, segment.start, finish, segment.text[:end])
        kept.append((segment, ids[:length]))
        length -= len(ids)
        if length <= 0:
            break
    return kept


def unread(
    document: Document, segments: Sequence[Segment], read: Sequence[Segment], encode: Encode
) -> int:
    """Tokens of `document` that stand in `segments`, but in none of those that were read.

    What stands in front of a segment, the document's first characters, is a part of it.
    """
    contents = document.contents
    outside = np.zeros(len(contents) + 2, np.int8)
    for some, value in ((segments, 1), (read, 0)):
        for segment in some:
            front = len(segment.text) - (segment.end - segment.start)
            outside[1 : front + 1] = value
            outside[segment.start + 1 : segment.end + 1] = value
    starts, ends = (np.flatnonzero(np.diff(outside) == step).tolist() for step in (1, -1))
    return sum(map(len, encode([contents[a:b] for a, b in zip(starts, ends, strict=True)])))
