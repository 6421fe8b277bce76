"""What of one document is to be read for a query, and what has been read so far?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from birchbark.pipeline.reading.document_reader import EncodedDocument
from birchbark.records import Float32s, Ids, Segment
from birchbark.score_cache.score_file import row_shape


@dataclass(slots=True)
class Reading:
    """The segments of one document that a scorer reads, best first, and their scores so far.

    encoded: the segments to read, in document order. order: their positions in the order of
    reading. segments: these segments; None if the reader splits the document again when its hit is
    shown. scores: float32 (n,), or (n, width) for a document scorer; valid for the segments
    that have been read.
    """

    encoded: EncodedDocument
    order: Sequence[int]
    segments: tuple[Segment, ...] | None = None
    width: int = 1
    read: int = 0
    scores: Float32s = field(init=False)

    def __post_init__(self) -> None:
        self.scores = np.zeros((len(self.order), *row_shape(self.width)), np.float32)

    @property
    def complete(self) -> bool:
        """Whether everything has been read."""
        return self.read == len(self.order)

    @property
    def known(self) -> list[int]:
        """The positions of the segments that have been read, in document order."""
        return sorted(self.order[: self.read])

    def next(self, count: int | None = None) -> list[Ids]:
        """Return the token ids of the next `count` segments to read; of all if None."""
        end = None if count is None else self.read + count
        return [self.encoded.token_ids[i] for i in self.order[self.read : end]]

    def add(self, scores: Float32s) -> None:
        """Add the scores of the next segments."""
        self.scores[list(self.order[self.read : self.read + len(scores)])] = scores
        self.read += len(scores)
