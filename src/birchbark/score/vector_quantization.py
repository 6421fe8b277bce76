"""How are segment vectors stored in 16 or 8 bits per number, and how does that change scores?

With 16 bits, numbers are float16; with 8 bits, they are int8 with one scale per vector. The cosines
of all-MiniLM-L6-v2 change by at most 5e-5 and 2e-3, respectively (2,000 sentences of TIME with its
83 queries). For vectors of tokens see token_vectors.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.weights import quantize_rows
from birchbark.compiled import compiled
from birchbark.errors import InputError
from birchbark.records import Float32s, Ids
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.rounded_vector_scorer import RoundedVectors, RoundedVectorScorer

BITS = (16, 8)
BLOCK = 1024  # vectors that are converted to float32 at a time, so that they stay in the cache


def quantize_vectors(vectors: Float32s, bits: int) -> RoundedVectors:
    """Quantize vectors (n, hidden) to 16 or 8 bits.

    Returns the array `vectors` (n, hidden), float16 or int8, and for 8 bits also `scales`, float32
    (n,).
    """
    if bits not in BITS:
        raise InputError("unsupported number of bits", wanted="16 or 8", found=str(bits))
    if bits == 16:
        return {"vectors": vectors.astype(np.float16)}
    int8_vectors, scales = quantize_rows(vectors)  # (n, hidden), (n,)
    return {"vectors": int8_vectors, "scales": scales}


def dequantize_vectors(quantized: Mapping[str, NDArray[Any]]) -> Float32s:
    """Return the float32 vectors (n, hidden) that quantized vectors stand for."""
    vectors: Float32s = quantized["vectors"].astype(np.float32)
    return vectors * quantized["scales"][:, None] if "scales" in quantized else vectors


def inner_products(quantized: Mapping[str, NDArray[Any]], query: Float32s) -> Float32s:
    """Return the inner products (n,) of quantized vectors with a vector (hidden,).

    They are those of `dequantize_vectors(quantized)`, ten times as fast, but for the last bits,
    which may depend on n.
    """
    vectors = quantized["vectors"]
    products = np.empty(len(vectors), np.float32)
    in_8_bits = "scales" in quantized
    factors = query if in_8_bits else query * np.float32(2.0**112)  # see _widen
    for begin in range(0, len(vectors), BLOCK):
        rows = vectors[begin : begin + BLOCK]
        floats = rows.astype(np.float32) if in_8_bits else _widen(rows.view(np.uint16))
        np.matmul(floats.view(np.float32), factors, out=products[begin : begin + BLOCK])
    return products * quantized["scales"] if in_8_bits else products


@compiled
def _widen(bits: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """Return float16 numbers as float32 numbers that are smaller by 2^112.

    Both are given by their bits. Sign and fraction move to their new places, and the exponent stays
    as it is; 112 is the difference of the two formats' exponent biases. numpy's own conversion
    takes ten times as long.
    """
    widened = np.empty(bits.shape, np.uint32)
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            number = np.uint32(bits[i, j])
            sign = (number & np.uint32(0x8000)) << np.uint32(16)
            widened[i, j] = sign | (number & np.uint32(0x7FFF)) << np.uint32(13)
    return widened


class RoundedEmbeddingScorer(RoundedVectorScorer):
    """An embedding scorer that rounds segment vectors as an index stores them.

    The rows of a segment are its vector, and with 8 bits its scale.
    """

    def __init__(
        self, scorer: EmbeddingScorer, bits: int, embedder: EmbeddingScorer | None = None
    ) -> None:
        """Wrap `scorer`. bits: one of BITS; InputError for others.

        embedder: embeds segments in the scorer's place, which then only embeds queries.
        """
        super().__init__(scorer, bits, quantize_vectors(scorer.embed([]), bits))
        self._scorer, self._embedder = scorer, embedder or scorer

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """See Scorer."""
        quantized = quantize_vectors(self._embedder.embed(token_ids), self.bits)
        return self._scorer.cosines(query, dequantize_vectors(quantized))

    def quantize(self, token_ids: Sequence[Ids]) -> list[RoundedVectors]:
        """See RoundedVectorScorer."""
        # the vectors are on disk soon: others need the place in the scorer's cache more
        quantized = quantize_vectors(self._embedder.embed(token_ids, keep=False), self.bits)
        return [
            {name: rows[i : i + 1] for name, rows in quantized.items()}
            for i in range(len(token_ids))
        ]

    def compare(
        self, query: str, documents: Sequence[Mapping[str, NDArray[Any]]]
    ) -> list[Float32s]:
        """See RoundedVectorScorer."""
        if not documents:
            return []
        joined = {name: np.concatenate([rows[name] for rows in documents]) for name in self.no_rows}
        ends = np.cumsum([len(rows["vectors"]) for rows in documents])
        blocks = [
            {name: rows[begin : begin + BLOCK] for name, rows in joined.items()}
            for begin in range(0, max(1, int(ends[-1])), BLOCK)
        ]  # so that few vectors are float32 at a time
        cosines = [self._scorer.cosines(query, dequantize_vectors(block)) for block in blocks]
        return np.split(np.concatenate(cosines), ends[:-1])
