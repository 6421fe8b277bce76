"""How is scoring limited to the first segments or tokens, and how many tokens are cut off?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from birchbark.errors import require_at_least
from birchbark.records import Document, Segment
from birchbark.segment.split_long import Encode, Encoded, Spans


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits on how much of a document is scored; None means no limit.

    segments: the maximum number of segments per document; each chunk of a long segment counts.
    length: the maximum number of tokens per segment.
    """

    segments: int | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("segments", self.segments), ("length", self.length)):
            if value is not None:
                require_at_least(f"limit of {name}", value, 1)

    def apply(self, fitted: Sequence[list[Encoded]], spans: Spans) -> list[Encoded]:
        """Return the segments and chunks within the limits.

        fitted: the result of `split_long`. spans: see `split_long`.
        """
        limited = [
            encoded
            for chunks in fitted
            for encoded in (chunks if self.length is None else _cut(chunks, self.length, spans))
        ]
        return limited[: self.segments]


def _cut(chunks: list[Encoded], length: int, spans: Spans) -> list[Encoded]:
    """Return the first `length` tokens of one segment, which may consist of several chunks."""
    result: list[Encoded] = []
    for segment, ids in chunks:
        if len(ids) > length:
            end = spans(segment.text)[length - 1][1]
            finish = max(segment.start, segment.end - (len(segment.text) - end))
            segment = Segment(segment.doc_id, segment.start, finish, segment.text[:end])
        result.append((segment, ids[:length]))
        length -= len(ids)
        if length <= 0:
            break
    return result


def count_truncated_tokens(
    document: Document, segments: Sequence[Segment], read: Sequence[Segment], encode: Encode
) -> int:
    """Count the tokens of `document` that are in one of `segments`, but not in any of `read`.

    A title that is prepended to a segment is part of it. read: the segments that are scored.
    """
    contents = document.contents
    missing = np.zeros(len(contents) + 2, np.int8)  # 1 at character + 1: in a segment, not read
    for group, value in ((segments, 1), (read, 0)):
        for segment in group:
            prefix = len(segment.text) - (segment.end - segment.start)
            missing[1 : prefix + 1] = value
            missing[segment.start + 1 : segment.end + 1] = value
    starts, ends = (np.flatnonzero(np.diff(missing) == step).tolist() for step in (1, -1))
    return sum(map(len, encode([contents[a:b] for a, b in zip(starts, ends, strict=True)])))
