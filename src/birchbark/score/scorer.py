"""What can every scorer do? The few calls that the pipeline makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from birchbark.errors import InputError
from birchbark.records import Float32s


class Scorer(Protocol):
    """Scores segments for a query, in [0, 1], higher is better.

    name: what reports call it. kind: one word for the tags of runs.
    A score depends on the query and the segment's text alone: not on the batch, on the number of
    threads or on what else is scored.
    """

    name: str
    kind: str

    @property
    def fingerprint(self) -> str:
        """Equal for scorers that give equal scores."""
        ...

    def room(self, query: str) -> int:
        """Tokens that a segment may have beside `query`; InputError if the query is too long."""
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token in `text`, in characters."""
        ...

    def score(self, query: str, texts: Sequence[str]) -> Float32s:
        """Scores (n,) of `texts`; InputError for a text that does not fit: nothing is cut here."""
        ...


def check_room(lengths: Sequence[int], texts: Sequence[str], room: int) -> None:
    """Raise InputError if a text has more tokens than `room`."""
    for length, text in zip(lengths, texts, strict=True):
        if length > room:
            raise InputError(
                f"segment is too long for the model: {text[:40]!r}…",
                wanted=f"at most {room} tokens",
                found=str(length),
                remedy="cut it first (birchbark.segment.fit)",
            )


def too_long(query: str, length: int, most: int) -> InputError:
    """The error for a query that leaves no room for text."""
    return InputError(
        f"query is too long for the model: {query[:40]!r}…",
        wanted=f"at most {most} tokens",
        found=str(length),
    )
