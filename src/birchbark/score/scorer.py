"""Which methods must a scorer have?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.records import Float32s, Ids
from birchbark.score.precision import Precision


class Scorer(Protocol):
    """Scores segments for a query, in [0, 1]; higher is better.

    A text is encoded once (`encode`); its token ids are then counted, batched, cached and scored.
    A score depends only on the query and the segment's token ids, not on the batch, the number of
    threads or the other segments.

    Attributes:
        name: Name of the scorer, for reports.
        kind: One word for the kind of scorer, for the tags of runs.
    """

    name: str
    kind: str

    @property
    def fingerprint(self) -> str:
        """Hash that is equal only for scorers that return equal scores."""
        ...

    @property
    def encoding(self) -> str:
        """Fingerprint of the tokeniser, equal only for scorers that encode texts identically."""
        ...

    @property
    def vocabulary(self) -> int:
        """The number of token ids."""
        ...

    @property
    def width(self) -> int:
        """Numbers per pair: 1 for a score, otherwise the length of a vector (DocumentScorer)."""
        ...

    def token_budget(self, query: str) -> int:
        """Return how many tokens a segment may have; InputError if the query is too long."""
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end offset of each token in `text`, in characters."""
        ...

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Return the token ids of each text, without special tokens; nothing is truncated."""
        ...

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """Return the scores (n,) of encoded texts; InputError if one is too long.

        A DocumentScorer, whose `width` is above 1, returns vectors (n, width) instead.
        """
        ...


class LoadScorer(Protocol):
    """Loads scorers, as `load_scorer` does."""

    def __call__(
        self, model: str, /, *, pooling: str | None = None, precision: Precision = ...
    ) -> Scorer:
        """Return the scorer of a model by its name; see `load_scorer`."""
        ...


class DocumentScorer(Scorer, Protocol):
    """Scores a document from the vectors of its segments, instead of from their scores."""

    def score_document(self, values: Float32s) -> tuple[float, NDArray[np.float64]]:
        """Return the document's score in [0, 1], and each segment's share (n,) in it.

        values: the vectors of the document's segments (n, width). Shares sum to 1. A document
        without segments scores 0.
        """
        ...


def score_texts(scorer: Scorer, query: str, texts: Sequence[str]) -> Float32s:
    """Return the scores (n,) of `texts`, none of which may exceed `Scorer.token_budget`."""
    return scorer.score(query, scorer.encode(texts))


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


def cut_text(scorer: Scorer, text: str, max_tokens: int | None) -> tuple[str, int]:
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


def query_too_long(query: str, length: int, max_tokens: int) -> InputError:
    """Return the error for a query that leaves too few tokens for a text."""
    return InputError(
        f"query is too long for the model: {query[:40]!r}…",
        wanted=f"at most {max_tokens} tokens (words or parts of words)",
        found=str(length),
        remedy=f"shorten it, or have its beginning read: --set query_tokens={max_tokens}, or "
        f"query_tokens={max_tokens} in Python",
    )
