"""Which methods must a scorer have?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
