"""How is a checkpoint made smaller on the disk, without other arithmetic?

Matrices are stored in float16 (16 bits), or as int8 with a float32 scale for each row (8 bits):
tensor NAME int8 (out, inner) and tensor NAME.scale float32 (out,), so that a weight is their
product. Rows are a linear layer's outputs or a table's entries. Vectors stay as they are: they are
few. All is widened to float32 when it is read (weights.py), so this is the one place that narrows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import new_directory, refuse_existing
from birchbark.checkpoint.reader import check_model, open_any, read_modules
from birchbark.checkpoint.shards import INDEX, weight_files
from birchbark.checkpoint.shelf import SOURCE
from birchbark.checkpoint.weights import SCALE, WEIGHTS, find_weights, quantised, read_tensors
from birchbark.errors import CheckpointError, InputError

BITS = (8, 16)
COPIED = {".json", ".txt", ".md", ".model", ""}  # "": LICENSE


def pack(model: Path, bits: int, target: Path, *, replace: bool = False) -> None:
    """Write `model`'s directory to `target` with its matrices in `bits` bits, whole or not at all.

    Configuration and tokeniser are copied. Raises InputError if `target` exists, unless it is to be
    replaced, and CheckpointError if `model` cannot be read.
    """
    if bits not in BITS:
        raise InputError("unknown number of bits", wanted="8 or 16", found=str(bits))
    where = str(open_any(model).weights)
    with write_again(model, target, replace=replace) as (_, tensors):
        narrow = narrowed(tensors, bits, where)
        tensors.clear()
        tensors.update(narrow)


@contextmanager
def write_again(
    model: Path, target: Path, *, replace: bool = False
) -> Iterator[tuple[Path, dict[str, NDArray[Any]]]]:
    """The new directory `target`, with a copy of `model`'s files, and its weights to be changed.

    The weights, by their stored names, widened, are written when the block ends; nothing is there
    if it raises. Raises InputError if `target` exists, unless it is to be replaced.
    """
    refuse_existing(target, replace=replace)
    weights = find_weights(model / read_modules(model).get("Transformer", ""))
    tensors = {n: v for file in weight_files(weights) for n, v in read_tensors(file, "").items()}
    with new_directory(target, replace=replace, check=check_model) as scratch:
        for path in sorted(model.rglob("*")):
            place = scratch / path.relative_to(model)
            hidden = any(part.startswith(".") for part in path.relative_to(model).parts)
            wanted = path.suffix in COPIED and not hidden  # .git may hold the weights again
            wanted = wanted and path.name != SOURCE  # whose checksums are of other files
            if path.is_file() and wanted and not path.name.endswith(INDEX):
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        place = scratch / weights.relative_to(model).with_name(WEIGHTS[0])
        place.parent.mkdir(parents=True, exist_ok=True)
        yield scratch, tensors
        _write(tensors, place)


def _write(tensors: dict[str, NDArray[Any]], path: Path) -> None:
    from safetensors.numpy import save

    path.write_bytes(save(tensors, metadata={"format": "pt"}))


def narrowed(tensors: Mapping[str, NDArray[Any]], bits: int, where: str) -> dict[str, NDArray[Any]]:
    """`tensors` with matrices of `bits` bits; CheckpointError for weights that float16 lacks."""
    narrow: dict[str, NDArray[Any]] = {}
    for name, value in tensors.items():
        if value.ndim != 2 or value.dtype.kind != "f":
            narrow[name] = np.ascontiguousarray(value)
        elif bits == 8:
            narrow[name], narrow[name + SCALE] = quantised(value.astype(np.float32))
        else:
            with np.errstate(over="ignore"):
                narrow[name] = value.astype(np.float16)
            if not np.isfinite(narrow[name]).all():
                raise CheckpointError(
                    f"weights {name} are too large for 16 bits", where=where, remedy="use 8 bits"
                )
    return narrow
