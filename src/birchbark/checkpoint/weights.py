"""How are weights read from safetensors, and why from nothing else?

Those stored in 16 or 8 bits (float16, bfloat16, int8 as packing.py writes it) are widened to
float32, so a small file is not a worse arithmetic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import CheckpointError
from birchbark.records import Float32s

Tensors = Mapping[str, NDArray[np.float32]]

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
SCALE = ".scale"  # of the tensor that holds the scale of each row of an int8 tensor
TINY = np.float32(1e-20)  # a row of zeros has a scale as well
PICKLES = ("pytorch_model.bin", "model.pt", "model.ckpt")


def find_weights(directory: Path) -> Path:
    """The safetensors file, or else the index of its shards (shards.py).

    Raises CheckpointError if there is neither, with the way out of a pickle.
    """
    for name in WEIGHTS:
        if (directory / name).is_file():
            return directory / name
    pickle = next((name for name in PICKLES if (directory / name).exists()), None)
    if pickle:
        raise CheckpointError(
            f"the weights are a pickle ({pickle}), which can run any code when loaded",
            where=str(directory),
            remedy="where you trust it, load it with transformers and save_pretrained it again: "
            "that writes model.safetensors",
        )
    raise CheckpointError("no model.safetensors", where=str(directory))


def read_shapes(path: Path, prefix: str) -> dict[str, list[int]]:
    """Tensor name without `prefix` → shape, from the header of the safetensors file."""
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = stream.read(size) if size < 100_000_000 else b""
    try:
        entries = json.loads(header)
        return {
            todays_name(name, prefix): [int(size) for size in entry["shape"]]
            for name, entry in entries.items()
            if name != "__metadata__"
        }
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError) as broken:
        raise CheckpointError(
            "damaged weights: no safetensors header", where=str(path), remedy="fetch the file again"
        ) from broken


def sound(tensors: Tensors, name: str, shape: tuple[int, ...], where: str) -> NDArray[np.float32]:
    """The weights called `name`, float32; CheckpointError unless of this shape, all numbers."""
    value = tensors.get(name)
    if value is None or value.shape != shape:
        raise CheckpointError(
            f"weights {name} do not fit config.json",
            where=where,
            wanted=f"shape {shape}",
            found="none" if value is None else f"shape {value.shape}",
        )
    if not np.isfinite(value).all():
        raise CheckpointError(
            f"weights {name} are not all numbers",
            where=where,
            found="NaN or infinity",
            remedy="fetch the model again, or save it again",
        )
    return value.astype(np.float32, copy=False)


def read_tensors(path: Path, prefix: str) -> Tensors:
    """All weights by their names without `prefix`, as stored; bfloat16 and int8 as float32."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        loaded = _bfloat16(path) or load_file(path)
    except SafetensorError as broken:
        raise CheckpointError(
            f"damaged weights: {broken}", where=str(path), remedy="fetch the file again"
        ) from broken
    except (AttributeError, KeyError, TypeError) as unknown:
        raise CheckpointError(
            f"weights of a type that numpy does not know: {unknown}",
            where=str(path),
            wanted="float32, float16, bfloat16, float64, or int8 with scales",
            remedy="save the model again as float32",
        ) from unknown
    widened = {n: _widened(loaded, n, path) for n in loaded if not _is_scale(loaded, n)}
    return {todays_name(name, prefix): value for name, value in widened.items()}


def _bfloat16(path: Path) -> dict[str, NDArray[Any]]:
    """All tensors, where some are bfloat16, which numpy lacks: float32's upper half. Else empty."""
    from safetensors import deserialize, safe_open

    with safe_open(path, framework="numpy") as file:
        kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
        if "BF16" not in kinds.values():
            return {}
        found = {n: file.get_tensor(n) for n, kind in kinds.items() if kind != "BF16"}
    for name, tensor in deserialize(path.read_bytes()):  # type: ignore[no-untyped-call]
        if kinds[name] == "BF16":
            upper = np.frombuffer(tensor["data"], "<u2").astype(np.uint32) << 16
            found[name] = upper.view(np.float32).reshape(tensor["shape"])
    return found


def _is_scale(loaded: Tensors, name: str) -> bool:
    of = loaded.get(name.removesuffix(SCALE)) if name.endswith(SCALE) else None
    return of is not None and of.dtype == np.int8


def _widened(loaded: Tensors, name: str, path: Path) -> NDArray[Any]:
    """The tensor `name`; int8 times its scales. CheckpointError if these do not fit."""
    value, scale = loaded[name], loaded.get(name + SCALE)
    if value.dtype != np.int8:
        return value
    if scale is None or scale.shape != value.shape[:1] or not np.isfinite(scale).all():
        raise CheckpointError(
            f"int8 weights {name} without their scales",
            where=str(path),
            wanted=f"{name}{SCALE}, finite, of shape {value.shape[:1]}",
            found="none" if scale is None else f"shape {scale.shape}",
            remedy="pack the model again (birchbark model pack)",
        )
    return value * scale.astype(np.float32).reshape(-1, *[1] * (value.ndim - 1))


def quantised(weight: Float32s, most: int = 127) -> tuple[NDArray[np.int8], Float32s]:
    """int8 (out, inner), from -`most` to `most`, and the scale of each output, float32 (out,)."""
    scale = np.maximum(np.abs(weight).max(axis=1), TINY) / np.float32(most)
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def todays_name(stored: str, prefix: str) -> str:
    """A tensor's name without prefix; norms of early checkpoints have gamma and beta."""
    name = re.sub(r"(?<=LayerNorm\.)gamma$", "weight", stored.removeprefix(prefix))
    return re.sub(r"(?<=LayerNorm\.)beta$", "bias", name)
