"""How is a model's graph run by torch?

Torch runs, node by node, the same graph that ONNX Runtime runs on the CPU (score/graph.py). In
float32, scores agree to about 1e-6, but not to the last bit. The last bits of a GPU's scores also
depend on the batch (docs/explanation/determinism.md).

A batch holds inputs of similar length, padded to the longest: starting the operations of a graph
takes a GPU as long as computing them for thousands of tokens, so a batch per length would leave it
idle.

In bf16 and fp16, the matrix products of embedding layer and encoder are computed in 16 bits, norms
and softmax in float32, by torch's autocast. The head, after the last norm, is computed in
float32, because bf16 would make the scores of many texts equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import is_per_token, layers_of
from birchbark.checkpoint.layers import LayerNorm
from birchbark.device.operators import MASKED, Step, read_steps
from birchbark.errors import BirchbarkError, InputError, MissingPackageError, first_line
from birchbark.records import Ids
from birchbark.score.batches import similar_lengths
from birchbark.score.graph import build_graph
from birchbark.score.precision import Precision
from birchbark.score.session import Floats, SessionFactory, check_finite, row_offsets

GPU_BATCH_TOKENS = (
    16_384  # tokens per batch, with padding; the batches that suit a CPU's cache leave a GPU idle
)


def torch_session_factory(device: str) -> SessionFactory:
    """Return a factory of sessions on a torch device, such as cpu, cuda or cuda:1.

    Raises MissingPackageError without torch, and InputError for a CUDA device without a GPU.
    """
    torch = _torch()
    if device.startswith("cuda") and not torch.cuda.is_available():
        cuda_version = torch.version.cuda
        raise InputError(
            "torch finds no GPU",
            where=f"device {device}",
            found=f"torch {torch.__version__}"
            + (
                f" for CUDA {cuda_version}, but no device"
                if cuda_version
                else ", built without CUDA"
            ),
            remedy="use --device cpu",
        )
    return partial(TorchSession, device=device)


def name_of_device(device: str) -> str:
    """Return the kind of device, with the model of a GPU; MissingPackageError without torch."""
    if device == "cpu":
        return device
    torch = _torch()
    return f"{torch.device(device).type} {torch.cuda.get_device_name(device)}"


def session_factory(device: str) -> SessionFactory | None:
    """Return None for cpu, where models run without torch, otherwise `torch_session_factory`."""
    return None if device == "cpu" else torch_session_factory(device)


class TorchSession:
    """A model that is ready to run on a torch device. See Session (score/session.py)."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        batch_tokens: int = GPU_BATCH_TOKENS,
        *,
        precision: Precision = Precision.FP32,
        device: str = "cuda",
    ) -> None:
        """Build the graph and move its weights to `device`.

        threads: ignored, since torch chooses the number of threads. batch_tokens: the maximum
        number of tokens per batch, with padding. Raises InputError for int8, and if the weights do
        not fit into the memory of a GPU.
        """
        if not precision.runs_on_gpu:
            raise InputError(
                f"{precision.value} arithmetic runs on the CPU only", remedy="use --device cpu"
            )
        self._torch = torch = _torch()
        self._device = torch.device(device)
        graph, weights = build_graph(checkpoint)
        steps, inputs, constants = read_steps(graph)
        head = _end_of_encoder(steps, checkpoint)
        self._encoder, self._head = steps[:head], steps[head:]
        self._typed = "types" in inputs
        arithmetic = f"torch {torch.__version__} {self._device.type}{precision.suffix} "
        self._arithmetic = arithmetic.encode() + graph
        self._dtype = {Precision.BF16: torch.bfloat16, Precision.FP16: torch.float16}.get(precision)
        factors = {
            name for step in self._encoder if step.operator == "MatMul" for name in step.inputs
        }
        with self._errors():
            moved = {
                name: torch.from_numpy(w).to(self._device, self._dtype if name in factors else None)
                for name, w in weights.items()
            }
        self._values: Mapping[str, Any] = {**constants, **moved}
        self._per_token = is_per_token(checkpoint.head)
        self._batch_tokens = batch_tokens
        self._where = str(checkpoint.directory)

    def fingerprint(self, checkpoint: str) -> str:
        """Return a SHA-256 of the checkpoint's fingerprint, the graph, torch and device type."""
        return hashlib.sha256(checkpoint.encode() + self._arithmetic).hexdigest()

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Floats:
        """Return the output for each input, in the order given; see OnnxSession."""
        results: list[Any] = []
        positions: list[
            NDArray[np.int64]
        ] = []  # for each result, the positions of its rows in the output
        offsets = row_offsets([len(i) for i in ids], per_token=self._per_token)
        torch = self._torch
        with torch.inference_mode(), _full_precision(torch), self._errors():
            for batch in similar_lengths([len(i) for i in ids], self._batch_tokens):
                lengths = np.array([len(ids[i]) for i in batch])
                column = np.arange(lengths[-1])
                exists = column < lengths[:, None]  # (B, S)
                mask = None if exists.all() else torch.from_numpy(exists).to(self._device)
                feed = {"ids": self._tensor([ids[i] for i in batch], exists)}  # (B, S)
                if types is not None and self._typed:
                    feed["types"] = self._tensor([types[i] for i in batch], exists)
                result = self._run({**self._values, **feed}, mask)  # (B, …)
                position = offsets[batch]  # (B,)
                if self._per_token:
                    position = (position[:, None] + column)[exists]  # (tokens,)
                    result = result.reshape(-1, result.shape[2]) if mask is None else result[mask]
                results.append(result)
                positions.append(position)
            if not results:
                return np.empty(0, np.float32)
            rows: Floats = torch.cat(results).cpu().numpy()  # the only wait for the device
        out = np.empty_like(rows)
        out[np.concatenate(positions)] = rows
        return check_finite(out, self._where)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise BirchbarkError instead of torch's errors of the GPU."""
        try:
            yield
        except self._torch.cuda.OutOfMemoryError as full:
            raise BirchbarkError(
                "the GPU's memory is full",
                where=f"device {self._device}",
                found=first_line(full),
                remedy="stop other programs on it, or use --device cpu",
            ) from full
        except RuntimeError as broken:
            if "CUDA" not in str(broken):
                raise
            raise BirchbarkError(
                "the GPU cannot run this model",
                where=f"device {self._device}",
                found=first_line(broken),
                remedy="use --device cpu",
            ) from broken

    def _run(self, values: dict[str, Any], mask: Any) -> Any:
        """Return the value called `out`. mask: where inputs have tokens, bool (B, S), or None."""
        sixteen_bits = self._torch.autocast(
            self._device.type, self._dtype, enabled=self._dtype is not None
        )
        with sixteen_bits:
            _run(self._encoder, values, mask)
        _run(self._head, values, mask)
        return values["out"]

    def _tensor(self, rows: Sequence[Ids], exists: NDArray[np.bool_]) -> Any:
        """Return rows padded with 0, int64 (B, S). exists: where there is a token (B, S)."""
        padded = np.zeros(exists.shape, np.int64)
        padded[exists] = np.concatenate(rows)
        return self._torch.from_numpy(padded).to(self._device)


def _end_of_encoder(steps: Sequence[Step], checkpoint: Checkpoint) -> int:
    """Return the index of the first step after the encoder's last layer normalisation."""
    norms = [layer for layer in layers_of(checkpoint.head) if isinstance(layer, LayerNorm)]
    in_head = {f"{norm.name}.weight" for norm in norms}
    return 1 + max(
        i
        for i, step in enumerate(steps)
        if step.operator == "LayerNormalization" and not in_head.intersection(step.inputs)
    )


def _run(steps: Sequence[Step], values: dict[str, Any], mask: Any) -> None:
    """Add what the steps compute to `values`. Values are freed after their last use."""
    for step in steps:
        arguments = (values[name] for name in step.inputs)
        masked = {"mask": mask} if step.operator in MASKED else {}
        results = step.compute(*arguments, **masked)
        values.update(zip(step.outputs, results, strict=True))
        for name in step.last_reads:
            del values[name]


@contextmanager
def _full_precision(torch: Any) -> Iterator[None]:
    """Compute matrix products in float32 even if TF32 is enabled.

    TF32 has a mantissa of 10 bits, which would change scores.
    """
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
            "running a model on this device needs torch", remedy="pip install 'birchbark[train]'"
        ) from None
    return torch
