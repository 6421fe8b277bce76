"""How is the lean graph run by torch, on a GPU?

It is the same graph that ONNX Runtime runs on processors (score/graph.py), node by node, in
float32. Scores agree to about 1e-6, but not to the last bit; nor do a GPU's own scores keep their
last bits in another batch (ARCHITECTURE.md, "Scores that do not drift").
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.heads import by_token
from birchbark.checkpoint.reader import Checkpoint
from birchbark.device.operators import Step, read_steps
from birchbark.errors import InputError, MissingPackageError, first_line
from birchbark.records import Ids
from birchbark.score.batches import equal_lengths
from birchbark.score.graph import build_graph
from birchbark.score.precision import Precision
from birchbark.score.session import Floats, NewSession, numbers, row_starts

BATCH_TOKENS = 16_384  # a GPU is idle with the few that fit a processor's cache


def on_device(device: str) -> NewSession:
    """Opens checkpoints on `device`, cpu or cuda, cuda:1 and so on.

    Raises MissingPackageError without torch, and InputError where torch finds no such device.
    """
    torch = _torch()
    if device.startswith("cuda") and not torch.cuda.is_available():
        built = torch.version.cuda
        raise InputError(
            "no GPU that torch can use",
            where=f"device {device}",
            found=f"torch {torch.__version__}"
            + (f" for CUDA {built}, but no device" if built else ", built without CUDA"),
            remedy="--device cpu needs none",
        )
    return partial(TorchSession, device=device)


def session_on(device: str) -> NewSession | None:
    """As `on_device`; None for the processors, where ONNX Runtime needs no torch."""
    return None if device == "cpu" else on_device(device)


class TorchSession:
    """A checkpoint ready to run on a device of torch; stands in for score/session.py's Session."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
        *,
        precision: Precision = Precision.FP32,
        device: str = "cuda",
    ) -> None:
        """Build the graph and move its weights to `device`. threads: not looked at by a GPU.

        Raises InputError for another precision than float32.
        """
        if precision is not Precision.FP32:
            raise InputError(
                f"{precision.value} arithmetic needs the processors", remedy="--device cpu"
            )
        self._torch = torch = _torch()
        self._device = torch.device(device)
        graph, weights = build_graph(checkpoint)
        self._steps, inputs, constants = read_steps(graph)
        self._typed = "types" in inputs
        self._arithmetic = f"torch {torch.__version__} {self._device.type} ".encode() + graph
        with self._errors():
            moved = {name: torch.from_numpy(w).to(self._device) for name, w in weights.items()}
        self._values: Mapping[str, Any] = {**constants, **moved}
        self._by_token = by_token(checkpoint.head)
        self._batch_tokens = batch_tokens
        self._where = str(checkpoint.directory)

    def fingerprint(self, checkpoint: str) -> str:
        """SHA-256 over a checkpoint's fingerprint, the graph, and what runs it on which device."""
        return hashlib.sha256(checkpoint.encode() + self._arithmetic).hexdigest()

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """The graph's output for each input, in the order given: see Session."""
        parts: list[Any] = []
        places: list[NDArray[np.int64]] = []
        starts = row_starts([len(i) for i in ids], by_token=self._by_token)
        torch = self._torch
        with torch.inference_mode(), _full_precision(torch), self._errors():
            for batch in equal_lengths([len(i) for i in ids], self._batch_tokens):
                feed = {"ids": self._tensor([ids[i] for i in batch])}
                if types is not None and self._typed:
                    feed["types"] = self._tensor([types[i] for i in batch])
                found, rows_of = _run(self._steps, {**self._values, **feed}), starts[batch]
                if self._by_token:
                    rows_of = (rows_of[:, None] + np.arange(found.shape[1])).reshape(-1)
                    found = found.reshape(-1, found.shape[2])
                parts.append(found)
                places.append(rows_of)
            if not parts:
                return np.empty(0, np.float32)
            rows: Floats = torch.cat(parts).cpu().numpy()  # waits for the device once
        out = np.empty_like(rows)
        out[np.concatenate(places)] = rows
        return numbers(out, self._where)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the device refuses, in plain words."""
        try:
            yield
        except self._torch.cuda.OutOfMemoryError as full:
            raise InputError(
                "the GPU's memory is full",
                where=f"device {self._device}",
                found=first_line(full),
                remedy="end what else runs on it, or --device cpu",
            ) from full
        except RuntimeError as broken:
            if "CUDA" not in str(broken):
                raise
            raise InputError(
                "the GPU does not run this model",
                where=f"device {self._device}",
                found=first_line(broken),
                remedy="--device cpu runs it",
            ) from broken

    def _tensor(self, rows: Sequence[Ids]) -> Any:
        return self._torch.from_numpy(np.stack(rows).astype(np.int64)).to(self._device)


def _run(steps: Sequence[Step], values: dict[str, Any]) -> Any:
    """The value called `out`; what no later step reads is let go, for a GPU's memory."""
    for step in steps:
        results = step.compute(*(values[name] for name in step.inputs))
        values.update(zip(step.outputs, results, strict=True))
        for name in step.last_reads:
            del values[name]
    return values["out"]


@contextmanager
def _full_precision(torch: Any) -> Iterator[None]:
    """Products in float32: some environments have TF32 on, whose 10 bits would show in scores."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingPackageError(
            "running BERT on this device needs torch", remedy="pip install 'birchbark[train]'"
        ) from None
    return torch
