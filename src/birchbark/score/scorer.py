"""What can every scorer do? The few calls that the pipeline makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.records import Float32s, Ids


class Scorer(Protocol):
    """Scores segments for a query, in [0, 1], higher is better.

    name: what reports call it. kind: one word for the tags of runs.
    Text becomes token ids once (`encode`), and those are what is scored: counted, batched, kept. A
    score depends on the query and the segment's ids alone: not on the batch, on the number of
    threads or on what else is scored.
    """

    name: str
    kind: str

    @property
    def fingerprint(self) -> str:
        """Equal for scorers that give equal scores."""
        ...

    @property
    def encoding(self) -> str:
        """Equal for scorers that encode texts alike."""
        ...

    @property
    def vocabulary(self) -> int:
        """Token ids are below this."""
        ...

    @property
    def width(self) -> int:
        """Numbers that are known of a pair: 1, its score, or as many as a vector has."""
        ...

    def room(self, query: str) -> int:
        """Tokens that a segment may have beside `query`; InputError if the query is too long."""
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token in `text`, in characters."""
        ...

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids of each text, all of them, without special tokens."""
        ...

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        """Scores (n,) of encoded texts; InputError for one that does not fit: nothing is cut.

        Where `width` is above 1, vectors (n, width) instead: see DocumentScorer.
        """
        ...


class DocumentScorer(Scorer, Protocol):
    """Scores documents by vectors of their segments, which scores of segments do not add up to."""

    def judge(self, values: Float32s) -> tuple[float, NDArray[np.float64]]:
        """The score in [0, 1] of a document whose segments have these vectors (n, width), in order.

        And the share (n,) of each segment in it; shares add up to 1. Without segments it is 0.
        """
        ...


def score_texts(scorer: Scorer, query: str, texts: Sequence[str]) -> Float32s:
    """Scores (n,) of `texts`, which must fit (`Scorer.room`)."""
    return scorer.score(query, scorer.encode(texts))


def check_room(pieces: Sequence[Ids], room: int) -> None:
    """Raise InputError if an encoded text has more tokens than `room`."""
    longest = max(map(len, pieces), default=0)
    if longest > room:
        raise InputError(
            "segment is too long for the model",
            wanted=f"at most {room} tokens",
            found=str(longest),
            remedy="cut it first (birchbark.segment.fit)",
        )


def too_long(query: str, length: int, most: int) -> InputError:
    """The error for a query that leaves no room for text."""
    return InputError(
        f"query is too long for the model: {query[:40]!r}…",
        wanted=f"at most {most} tokens",
        found=str(length),
    )
