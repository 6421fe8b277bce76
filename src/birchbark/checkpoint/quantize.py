"""How are a model's weights stored in fewer bits, with unchanged arithmetic?

Matrices are stored as float16 (16 bits), or as int8 with a float32 scale per row (8 bits). With 8
bits, the tensors NAME, int8 (out, inner), and NAME.scale, float32 (out,), are multiplied to give
the weights; a row belongs to one output of a linear layer, or to one entry of an embedding. Vectors
are small and remain unchanged. All weights are widened to float32 when they are read (weights.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import new_directory, refuse_existing
from birchbark.checkpoint.checkpoint import check_replaceable, open_any_head
from birchbark.checkpoint.model_folder import SOURCE
from birchbark.checkpoint.modules import WITH_WEIGHTS, list_modules
from birchbark.checkpoint.shards import INDEX, weight_files
from birchbark.checkpoint.weights import SCALE, WEIGHTS, find_weights, quantize_rows, read_tensors
from birchbark.errors import CheckpointError, InputError

BITS = (8, 16)
COPIED_SUFFIXES = {".json", ".txt", ".md", ".model", ""}  # "": LICENSE


def quantize_model(
    model: Path,
    bits: int,
    target: Path,
    *,
    replace: bool = False,
    finish: Callable[[Path], object] = lambda directory: None,
) -> None:
    """Write a copy of `model` to `target`, with matrices in 8 or 16 bits, atomically.

    finish: called with the directory of the complete copy, before it appears as `target`. Raises
    InputError for another number of bits, and if `target` exists and `replace` is false.
    Raises CheckpointError if `model` cannot be read, or a weight is too large for float16.
    """
    if bits not in BITS:
        raise InputError("unsupported number of bits", wanted="8 or 16", found=str(bits))
    where = str(open_any_head(model).weights)
    with model_copy(model, target, replace=replace, finish=finish) as (_, tensors):
        quantized = quantize_tensors(tensors, bits, where)
        tensors.clear()
        tensors.update(quantized)


@contextmanager
def model_copy(
    model: Path,
    target: Path,
    *,
    replace: bool = False,
    finish: Callable[[Path], object] = lambda directory: None,
) -> Iterator[tuple[Path, dict[str, NDArray[Any]]]]:
    """Copy a model with other weights: yield the new directory, and the weights to be changed.

    The weights are a dict from stored names to widened arrays; it is written when the block ends.
    If the block raises, the new directory is deleted. finish: see `quantize_model`. Raises
    InputError if `target` exists and `replace` is false.
    """
    refuse_existing(target, replace=replace)
    modules = list_modules(model)
    home = modules[0][1] if modules else ""  # a transformer, or a static embedding
    weights = find_weights(model / dict(modules).get("Transformer", home))
    unchanged = [find_weights(model / folder) for kind, folder in modules if kind in WITH_WEIGHTS]
    tensors = {n: v for file in weight_files(weights) for n, v in read_tensors(file, "").items()}
    with new_directory(target, replace=replace, check=check_replaceable) as scratch:
        for path in sorted(model.rglob("*")):
            copy = scratch / path.relative_to(model)
            if path in unchanged or (path.is_file() and _is_copied(path.relative_to(model))):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
        new_weights = scratch / weights.relative_to(model).with_name(WEIGHTS[0])
        new_weights.parent.mkdir(parents=True, exist_ok=True)
        yield scratch, tensors
        _write(tensors, new_weights)
        finish(scratch)


def _is_copied(path: Path) -> bool:
    """Whether a copy with other weights includes the file at this relative path."""
    if any(part.startswith(".") for part in path.parts):  # .git may hold the weights again
        return False
    if path.name == SOURCE or path.name.endswith(INDEX):  # they describe the original weights
        return False
    return path.suffix in COPIED_SUFFIXES


def _write(tensors: dict[str, NDArray[Any]], path: Path) -> None:
    from safetensors.numpy import save

    path.write_bytes(save(tensors, metadata={"format": "pt"}))


def quantize_tensors(
    tensors: Mapping[str, NDArray[Any]], bits: int, where: str
) -> dict[str, NDArray[Any]]:
    """Return `tensors` with matrices in 8 or 16 bits; CheckpointError if float16 overflows.

    where: path of the weights, for error messages.
    """
    quantized: dict[str, NDArray[Any]] = {}
    for name, value in tensors.items():
        if value.ndim != 2 or value.dtype.kind != "f":
            quantized[name] = np.ascontiguousarray(value)
        elif bits == 8:
            quantized[name], quantized[name + SCALE] = quantize_rows(value.astype(np.float32))
        else:
            with np.errstate(over="ignore"):
                quantized[name] = value.astype(np.float16)
            if not np.isfinite(quantized[name]).all():
                raise CheckpointError(
                    f"weights {name} are too large for 16 bits", where=where, remedy="use 8 bits"
                )
    return quantized
