"""How does a static embedding compute vectors? As sums of its tokens' vectors, without BERT."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.static_embedding import token_vectors
from birchbark.records import Float32s, Ids
from birchbark.score.precision import Precision

BLOCK_TOKENS = 2_048  # whose vectors fit into the processor's cache


class StaticSession:
    """A static embedding, ready to run; see `Session`."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        *,
        precision: Precision = Precision.FP32,
    ) -> None:
        """Threads and precision are of no effect: there are no linear layers."""
        self._checkpoint = checkpoint

    @cached_property
    def _table(self) -> Float32s:
        """The token vectors (vocabulary, hidden), read at their first use; most searches need none.

        CheckpointError if they are damaged.
        """
        checkpoint = self._checkpoint
        return token_vectors(checkpoint.tensors(), checkpoint.config, str(checkpoint.weights))

    def fingerprint(self, checkpoint: str) -> str:
        """See OnnxSession."""
        return hashlib.sha256(f"static {checkpoint}".encode()).hexdigest()

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Float32s:
        """Return the unit vector of each input, float32 (n, hidden); zeros for an empty input.

        A vector does not depend on the other inputs.
        """
        lengths = np.array([len(one) for one in ids], np.intp)
        vectors = np.zeros((len(ids), self._table.shape[1]), np.float32)
        filled = np.flatnonzero(lengths)
        ends = np.cumsum(lengths[filled])
        flat = np.concatenate([np.empty(0, np.int32), *ids])
        first = 0
        while first < len(filled):
            begin = int(ends[first - 1]) if first else 0
            last = int(np.searchsorted(ends, begin + BLOCK_TOKENS, side="right"))
            if last == first:  # longer than a block
                for start in range(begin, int(ends[first]), BLOCK_TOKENS):
                    block = flat[start : min(start + BLOCK_TOKENS, int(ends[first]))]
                    vectors[filled[first]] += self._table[block].sum(axis=0)
                first += 1
                continue
            starts = np.concatenate([[begin], ends[first : last - 1]]) - begin
            rows = self._table[flat[begin : ends[last - 1]]]
            vectors[filled[first:last]] = np.add.reduceat(rows, starts, axis=0)
            first = last
        norms = np.sqrt(np.einsum("nh,nh->n", vectors, vectors))
        vectors /= np.maximum(norms, np.float32(1e-12))[:, None]
        return vectors
