"""What becomes of texts and queries that have more tokens than a model reads?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from birchbark.errors import InputError
from birchbark.records import Ids


class Spanned(Protocol):
    """A scorer, or one side of a bi-encoder: tells where the tokens of a text are."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where each token of a text begins and ends."""


def check_token_budget(token_ids: Sequence[Ids], token_budget: int) -> None:
    """Raise InputError if an encoded text has more tokens than `token_budget`."""
    longest = max(map(len, token_ids), default=0)
    if longest > token_budget:
        raise InputError(
            "segment is too long for the model",
            wanted=f"at most {token_budget} tokens",
            found=str(longest),
            remedy="split it first (birchbark.segment.split_long)",
        )


def cut_text(scorer: Spanned, text: str, max_tokens: int | None) -> tuple[str, int]:
    """Return the first `max_tokens` tokens of a text as text, and the number of the others.

    It may be fewer tokens, since the beginning of a word or of a character may have others. It is
    an empty text if the first character has more tokens than that. max_tokens: None to cut nothing.
    """
    if max_tokens is None:
        return text, 0
    spans = scorer.spans(text)
    if len(spans) <= max_tokens:
        return text, 0
    kept = max_tokens
    while kept and len(scorer.spans(text[: spans[kept - 1][1]])) > max_tokens:
        kept -= 1
    return text[: spans[kept - 1][1]] if kept else "", len(spans) - kept


def longest_query(available: int) -> int:
    """Return how many tokens a query may have beside a text: half of an input.

    available: the tokens of an input, without special ones.
    """
    return available // 2


def query_too_long(query: str, length: int, max_tokens: int) -> InputError:
    """Return the error for a query that leaves too few tokens for a text."""
    return InputError(
        f"query is too long for the model: {query[:40]!r}…",
        wanted=f"at most {max_tokens} tokens (words or parts of words)",
        found=str(length),
        remedy=f"shorten it, or have its beginning read: --set query_tokens={max_tokens}, or "
        f"query_tokens={max_tokens} in Python",
    )
