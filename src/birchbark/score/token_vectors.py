"""How are the token vectors of segments stored in 8 or 4 bits per number, and scored by MaxSim?

Numbers are integers with one scale per vector; two integers of 4 bits share a byte. MaxSim is
computed from the integers: the query's vectors become integers of up to 16 bits, and a sum of
products of integers is exact in any order. For all-MiniLM-L6-v2, MaxSim changes by at most 1.4e-3
(8 bits) or 2.4e-2 (4 bits), on average by 1.2e-4 and 2.2e-3 (600 sentences of TIME, 83 queries).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.weights import MIN_SCALE, quantize_rows
from birchbark.compiled import compiled
from birchbark.errors import ArtifactError, InputError
from birchbark.records import Float32s, Ids
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.rounded_vector_scorer import RoundedVectors, RoundedVectorScorer

LARGEST = {8: 127, 4: 7}  # bits → largest integer
PER_SEGMENT = "vectors_per_segment"  # the array by which sets of token vectors are known
SUMS = 2**31 - 1  # sums of products are int32


class RoundedLateInteractionScorer(RoundedVectorScorer):
    """Late interaction that rounds segments' token vectors as an index stores them.

    The rows of a segment are the integers and the scale of each of its tokens, special tokens
    included, and one number: how many tokens these are.
    """

    def __init__(self, scorer: LateInteractionScorer, bits: int) -> None:
        """Wrap `scorer`. bits: 8 or 4; InputError for others."""
        no_vectors = np.empty((0, scorer.checkpoint.vector_size), np.float32)
        no_rows = quantize_token_vectors(no_vectors, bits) | {PER_SEGMENT: np.empty(0, np.uint32)}
        super().__init__(scorer, bits, no_rows)
        self._scorer = scorer

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """See Scorer. The query is rounded, too, to integers of 16 bits or somewhat fewer."""
        scores = self.compare(query, self.quantize(token_ids))
        return np.concatenate([np.empty(0, np.float32), *scores])

    def quantize(self, token_ids: Sequence[Ids]) -> list[RoundedVectors]:
        """See RoundedVectorScorer."""
        return [
            quantize_token_vectors(vectors, self.bits)
            | {PER_SEGMENT: np.array([len(vectors)], np.uint32)}
            for vectors in self._scorer.embed(token_ids)
        ]

    def compare(
        self, query: str, documents: Sequence[Mapping[str, NDArray[Any]]]
    ) -> list[Float32s]:
        """See RoundedVectorScorer."""
        if not documents:
            return []
        quantized = quantize_query(self._scorer.embed_query(query))
        scale = self._scorer.checkpoint.scale
        return [scale.similarities(max_sim(quantized, rows)) for rows in documents]


def quantize_token_vectors(vectors: Float32s, bits: int) -> RoundedVectors:
    """Quantize vectors (n, hidden) to 8 or 4 bits.

    Returns `vectors`, int8 (n, hidden) or uint8 (n, hidden / 2), and `scales`, float32 (n,). A byte
    of 4-bit vectors holds a number of the first half and, in its upper bits, one of the second,
    both plus 8.
    """
    if bits not in LARGEST:
        raise InputError("unsupported number of bits", wanted="8 or 4", found=str(bits))
    if vectors.shape[1] % 2 and bits == 4:
        raise InputError(
            "4 bits need an even number of dimensions", found=str(vectors.shape[1]), remedy="8 bits"
        )
    integers, scales = quantize_rows(vectors, LARGEST[bits])  # (n, hidden), (n,)
    if bits == 4:
        low, high = np.hsplit((integers + 8).view(np.uint8), 2)  # (n, hidden / 2) each
        return {"vectors": low | high << 4, "scales": scales}
    return {"vectors": integers, "scales": scales}


class QuantizedQuery(NamedTuple):
    """A query's token vectors as integers.

    Attributes:
        integers: int16 (q, hidden), so small that a sum of products is an int32.
        scales: float32 (q,).
    """

    integers: NDArray[np.int16]
    scales: Float32s


def quantize_query(vectors: Float32s) -> QuantizedQuery:
    """Quantize a query's unit vectors (q, hidden) to 16 bits, or fewer above 500 dimensions."""
    largest = min(2**15 - 1, SUMS // (LARGEST[8] * vectors.shape[1]))
    scales = np.maximum(np.abs(vectors).max(1), MIN_SCALE) / np.float32(largest)
    return QuantizedQuery(np.rint(vectors / scales[:, None]).astype(np.int16), scales)


def max_sim(query: QuantizedQuery, rows: Mapping[str, NDArray[Any]]) -> Float32s:
    """Return MaxSim of a query with stored segments, from −1 to 1: float32 (segments,).

    It is 0 for a query or a segment without vectors. Raises ArtifactError if the rows do not belong
    together.
    """
    scores = np.zeros(len(rows[PER_SEGMENT]), np.float32)
    wanted, found = int(rows[PER_SEGMENT].sum()), (len(rows["vectors"]), len(rows["scales"]))
    if found != (wanted, wanted):
        raise ArtifactError("damaged token vectors", wanted=f"{wanted} rows", found=str(found[0]))
    if len(query.scales):
        stored = (_read_only(rows[name]) for name in ("vectors", "scales", PER_SEGMENT))
        _max_sim(*stored, *query, scores)
    return scores


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: for arrays that can be written, numba would compile once more."""
    view = values.view()
    view.flags.writeable = False
    return view


@compiled
def _max_sim(
    vectors: NDArray[Any],
    scales: Float32s,
    per_segment: NDArray[np.uint32],
    query: NDArray[np.int16],
    query_scales: Float32s,
    scores: Float32s,
) -> None:
    """Set `scores` (segments,) to the mean over the query's tokens of the highest cosine.

    vectors: int8 (n, hidden) or uint8 (n, hidden / 2); scales: (n,). query: (q, hidden), its
    scales: (q,). `scores` of segments without vectors stay as they are.
    """
    hidden, width = query.shape[1], vectors.shape[1]
    numbers = np.empty(hidden, np.int16)  # of one stored vector
    products = np.empty(len(query), np.int32)
    best = np.empty(len(query), np.float32)
    row = 0
    for segment in range(len(per_segment)):
        best[:] = -np.inf
        for _ in range(per_segment[segment]):
            if width == hidden:  # 8 bits: widen
                for i in range(hidden):
                    numbers[i] = vectors[row, i]
            else:  # 4 bits: divide bytes
                for i in range(width):
                    numbers[i] = np.int16(vectors[row, i] & 15) - 8
                    numbers[width + i] = np.int16(vectors[row, i] >> 4) - 8
            _multiply(numbers, query, products)
            for token in range(len(query)):
                best[token] = max(best[token], np.float32(products[token]) * scales[row])
            row += 1
        total = 0.0  # in float64
        for token in range(len(query)):
            total += best[token] * query_scales[token]
        if per_segment[segment]:
            scores[segment] = total / len(query)


@compiled
def _multiply(
    numbers: NDArray[np.int16], query: NDArray[np.int16], products: NDArray[np.int32]
) -> None:
    """Set `products` (q,) to the inner products of `numbers` (hidden,) with `query` (q, hidden).

    As a part of `_max_sim` these loops would not be vectorised, and take four times as long.
    """
    for token in range(query.shape[0]):
        product = np.int32(0)
        for i in range(query.shape[1]):
            product += np.int32(numbers[i]) * np.int32(query[token, i])
        products[token] = product
