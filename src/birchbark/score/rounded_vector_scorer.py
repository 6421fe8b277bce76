"""Which methods must a scorer have that rounds its vectors as an index stores them?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from birchbark.records import Float32s, Ids
from birchbark.score.bert_scorer import BiEncoderScorer

RoundedVectors = dict[str, NDArray[Any]]  # array name → rows


class RoundedVectorScorer(ABC):
    """A bi-encoder that rounds segment vectors as an index stores them. See Scorer.

    A score must not depend on whether a vector was stored or has just been computed, so newly
    computed vectors are rounded, too.

    Attributes:
        bits: Bits per number of a vector.
        no_rows: The arrays of `quantize` with zero rows each.
    """

    def __init__(self, scorer: BiEncoderScorer, bits: int, no_rows: RoundedVectors) -> None:
        """Wrap `scorer`. bits: bits per number of a vector. no_rows: see above."""
        self.name, self.kind = scorer.name, scorer.kind
        self.encoding, self.vocabulary = scorer.encoding, scorer.vocabulary
        self.width = scorer.width
        self.fingerprint = f"{scorer.fingerprint}-{bits} bits"
        self.token_budget, self.spans, self.encode = (
            scorer.token_budget,
            scorer.spans,
            scorer.encode,
        )
        self.bits, self.no_rows = bits, no_rows

    @abstractmethod
    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """See Scorer."""

    @abstractmethod
    def quantize(self, token_ids: Sequence[Ids]) -> list[RoundedVectors]:
        """Return the rows that an index stores for each encoded text.

        InputError if a text is too long.
        """

    @abstractmethod
    def compare(
        self, query: str, documents: Sequence[Mapping[str, NDArray[Any]]]
    ) -> list[Float32s]:
        """Return the scores (segments,) of each document, bit for bit those of `score`.

        documents: the rows of each document, those of its segments one after the other.
        """
