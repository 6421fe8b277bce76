"""How does ONNX Runtime run a model's graph on batches of token ids?"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from birchbark.arguments import is_count
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling, is_per_token
from birchbark.errors import CheckpointError, InputError, require_at_least
from birchbark.records import Ids
from birchbark.score.batches import BATCH_TOKENS, equal_lengths
from birchbark.score.channel_ranges import channel_maxima
from birchbark.score.graph import build_graph
from birchbark.score.per_process import PerProcess
from birchbark.score.precision import Precision
from birchbark.score.runtime import open_graph
from birchbark.systems import usable_processors

Floats = NDArray[np.float32]


class Session(Protocol):
    """Runs a model for a scorer: in this process, on a GPU, or elsewhere."""

    def fingerprint(self, checkpoint: str) -> str:
        """See OnnxSession."""
        ...

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """See OnnxSession."""
        ...


class SessionFactory(Protocol):
    """Opens a session for a checkpoint."""

    def __call__(
        self, checkpoint: Checkpoint, threads: int | None = None, *, precision: Precision = ...
    ) -> Session:
        """Open a session; for the arguments see OnnxSession.

        Raises InputError if the session does not support the precision.
        """
        ...


def default_threads() -> int:
    """Return OMP_NUM_THREADS, which batch systems set, or else the number of processors."""
    chosen = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return int(chosen) if is_count(chosen) and int(chosen) else usable_processors()


class OnnxSession:
    """A model ready to run on this machine's CPU."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
        precision: Precision = Precision.FP32,
        poolings: Sequence[Pooling] = (),
    ) -> None:
        """Build the graph and load it.

        threads: number of threads, by default one per processor that this process may use. Each
        runs its own batches, since matrix products of a few hundred rows are too small to divide.
        batch_tokens: approximate number of tokens per batch. precision: arithmetic of the linear
        layers. poolings: see build_graph. Raises InputError for a precision of GPUs.
        """
        import onnxruntime

        if not precision.runs_on_cpu:
            raise InputError(
                f"{precision.value} is computed by GPUs only",
                remedy="use --device cuda; on the CPU, int8 is faster than fp32",
            )
        if threads is not None:
            require_at_least("number of threads", threads, 1)
        maxima = channel_maxima(checkpoint, poolings) if precision is Precision.INT8 else None
        graph, weights = build_graph(checkpoint, maxima, poolings)
        self._arithmetic = f"onnxruntime {onnxruntime.__version__} ".encode() + graph
        self._weights = weights  # the runtime reads these arrays in place
        self._session = open_graph(graph, weights)
        self._typed = any(put.name == "types" for put in self._session.get_inputs())
        self._per_token = is_per_token(checkpoint.head) and not poolings
        self._batch_tokens = batch_tokens
        self._threads = default_threads() if threads is None else threads
        self._pool = PerProcess(partial(ThreadPoolExecutor, self._threads, "birchbark-score"))
        self._where = str(checkpoint.directory)

    def fingerprint(self, checkpoint: str) -> str:
        """Return the SHA-256 of a checkpoint's fingerprint, the graph and the runtime's version.

        int8 weights are hashed too, since they are computed on this machine from the checkpoint's.
        """
        digest = hashlib.sha256(checkpoint.encode() + self._arithmetic)
        for value in self._weights.values():
            if value.dtype == np.int8:
                digest.update(value.tobytes())
        return digest.hexdigest()

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """Return the graph's float32 output for each input, in the order given.

        ids: the token ids of each input. types: the token types of each input, 0 or 1; ignored by
        models without token types. The shape of the result is (n,) for scores, (n, hidden) for
        vectors, (n, poolings, hidden) for several poolings, and (total tokens, hidden) for a model
        with a vector per token, whose inputs follow one another.
        """
        lengths = [len(i) for i in ids]
        per_thread = -(-sum(lengths) // self._threads)  # a few inputs still occupy all threads
        batches = list(equal_lengths(lengths, min(self._batch_tokens, per_thread)))

        def compute(batch: list[int]) -> Floats:
            feed = {"ids": np.stack([ids[i] for i in batch]).astype(np.int64)}  # (B, S)
            if types is not None and self._typed:
                feed["types"] = np.stack([types[i] for i in batch]).astype(np.int64)  # (B, S)
            result: Floats = self._session.run(["out"], feed)[0]  # (B, …)
            return result

        out: Floats | None = None
        offsets = row_offsets(lengths, per_token=self._per_token)  # (n + 1,)
        longest_first = batches[::-1]  # a long batch at the end would leave other threads idle
        results = self._pool.get().map(compute, longest_first)
        for batch, result in zip(longest_first, results, strict=True):
            rows = offsets[batch]  # (B,)
            if self._per_token:
                rows = rows[:, None] + np.arange(result.shape[1])  # (B, S)
            if out is None:
                out = np.empty((offsets[-1], *result.shape[rows.ndim :]), np.float32)
            out[rows] = result
        return np.empty(0, np.float32) if out is None else check_finite(out, self._where)


def row_offsets(lengths: Sequence[int], *, per_token: bool) -> NDArray[np.int64]:
    """Return the row at which each input begins in a session's output, and the end: (n + 1,).

    lengths: each input's number of tokens. per_token: whether the output has a row per token
    instead of a row per input.
    """
    sizes = np.asarray(lengths, np.int64) if per_token else np.ones(len(lengths), np.int64)
    return np.concatenate([[0], np.cumsum(sizes)])


def check_finite(out: Floats, where: str) -> Floats:
    """Return `out`, a model's output; CheckpointError if it contains NaN or infinity."""
    if not np.isfinite(out).all():
        raise CheckpointError(
            "the model's output is not finite",
            where=where,
            found="NaN or infinity",
            remedy="its weights are damaged, or do not belong to its config.json",
        )
    return out
