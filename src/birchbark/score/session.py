"""How are batches of token ids run through the lean graph, here by ONNX Runtime?"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.heads import Pooling, by_token
from birchbark.checkpoint.reader import Checkpoint
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Ids
from birchbark.score.batches import TOKENS, equal_lengths
from birchbark.score.channels import largest_channels
from birchbark.score.graph import build_graph
from birchbark.score.precision import Precision
from birchbark.score.runtime import open_graph

Floats = NDArray[np.float32]


class Runner(Protocol):
    """What scorers ask of a session; another runtime can stand in (device/session.py)."""

    def fingerprint(self, checkpoint: str) -> str:
        """See Session."""
        ...

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """See Session."""
        ...


class NewSession(Protocol):
    """Makes a session; another runtime's can stand in for `Session`."""

    def __call__(
        self, checkpoint: Checkpoint, threads: int | None = None, *, precision: Precision = ...
    ) -> Runner:
        """See Session; InputError for a precision that it cannot have."""
        ...


class Session:
    """A checkpoint ready to run on this machine's processors."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        batch_tokens: int = TOKENS,
        precision: Precision = Precision.FP32,
        poolings: Sequence[Pooling] = (),
    ) -> None:
        """Build the graph and load it. threads: all processors this process may use, if None.

        poolings: see build_graph.

        Each thread runs batches of its own: products of a few hundred rows are too small to be
        divided among several.
        """
        import onnxruntime

        if threads is not None and threads < 1:
            raise InputError("threads are out of range", wanted="1 or more", found=str(threads))
        largest = largest_channels(checkpoint) if precision is Precision.INT8 else None
        graph, weights = build_graph(checkpoint, largest, poolings)
        self._arithmetic = f"onnxruntime {onnxruntime.__version__} ".encode() + graph
        self._weights = weights  # the runtime reads these arrays where they are
        self._session = open_graph(graph, weights)
        self._typed = any(put.name == "types" for put in self._session.get_inputs())
        self._by_token = by_token(checkpoint.head) and not poolings
        self._batch_tokens = batch_tokens
        self._threads = len(os.sched_getaffinity(0)) if threads is None else threads
        self._pool = ThreadPoolExecutor(self._threads, "birchbark-score")
        self._where = str(checkpoint.directory)

    def fingerprint(self, checkpoint: str) -> str:
        """SHA-256 over a checkpoint's fingerprint, the graph and the version that runs it.

        Integer weights are rounded anew from the checkpoint's, here, so they count as well.
        """
        digest = hashlib.sha256(checkpoint.encode() + self._arithmetic)
        for value in self._weights.values():
            if value.dtype == np.int8:
                digest.update(value.tobytes())
        return digest.hexdigest()

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """The graph's output for each input, in the order given.

        float32 (n,), (n, hidden), or of several poolings (n, poolings, hidden); where tokens keep
        their vectors, (tokens, hidden), those of one input after those of another.
        types: 0 or 1 for each token; not looked at by models that know no types.
        """
        lengths = [len(i) for i in ids]
        share = -(-sum(lengths) // self._threads)  # few inputs are dealt to all threads as well
        batches = list(equal_lengths(lengths, min(self._batch_tokens, share)))

        def rows(batch: list[int]) -> Floats:
            feed = {"ids": np.stack([ids[i] for i in batch]).astype(np.int64)}
            if types is not None and self._typed:
                feed["types"] = np.stack([types[i] for i in batch]).astype(np.int64)
            found: Floats = self._session.run(["out"], feed)[0]
            return found

        out: Floats | None = None
        starts = row_starts(lengths, by_token=self._by_token)
        longest_first = batches[::-1]  # so that no thread begins a long one when others are done
        for batch, found in zip(longest_first, self._pool.map(rows, longest_first), strict=True):
            rows_of = starts[batch]
            if self._by_token:
                rows_of = rows_of[:, None] + np.arange(found.shape[1])
            if out is None:
                out = np.empty((starts[-1], *found.shape[rows_of.ndim :]), np.float32)
            out[rows_of] = found
        return np.empty(0, np.float32) if out is None else numbers(out, self._where)


def row_starts(lengths: Sequence[int], *, by_token: bool) -> NDArray[np.int64]:
    """Where in a session's output each input's rows begin, and where they all end: (n + 1,).

    lengths: of the inputs, in tokens. by_token: as many rows as tokens, otherwise one.
    """
    sizes = np.asarray(lengths, np.int64) if by_token else np.ones(len(lengths), np.int64)
    return np.concatenate([[0], np.cumsum(sizes)])


def numbers(out: Floats, where: str) -> Floats:
    """`out`, if it holds numbers; CheckpointError for NaN and infinity."""
    if not np.isfinite(out).all():
        raise CheckpointError(
            "the model computes something that is no number",
            where=where,
            found="NaN or infinity",
            remedy="its weights are damaged, or do not belong to its config.json",
        )
    return out
