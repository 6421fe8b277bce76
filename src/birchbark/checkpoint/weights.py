"""How are a model's weights read from safetensors files?

No other format is read: a pickle can run any code when it is loaded, a safetensors file cannot.
Weights stored in 16 or 8 bits (float16, bfloat16, or int8 as written by quantize.py) are widened to
float32, so that a smaller file does not mean less precise arithmetic.
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
SCALE = ".scale"  # suffix of the tensor that holds the scales of an int8 tensor's rows
MIN_SCALE = np.float32(1e-20)  # lower bound, so that a row of zeros can be divided by its scale
PICKLES = ("pytorch_model.bin", "model.pt", "model.ckpt")
MAX_HEADER_BYTES = 100_000_000


def find_weights(directory: Path) -> Path:
    """Return the safetensors file, or else the index of its shards (shards.py).

    Raises CheckpointError if neither exists; for a pickle, the message says how to convert it.
    """
    for name in WEIGHTS:
        if (directory / name).is_file():
            return directory / name
    pickle = next((name for name in PICKLES if (directory / name).exists()), None)
    if pickle:
        raise CheckpointError(
            f"the weights are a pickle ({pickle}), which can run any code when loaded",
            where=str(directory),
            remedy="if you trust it, load it with transformers and call save_pretrained: "
            "that writes model.safetensors",
        )
    raise CheckpointError("no model.safetensors", where=str(directory))


def read_tensor_shapes(path: Path, prefix: str) -> dict[str, list[int]]:
    """Return tensor name without `prefix` → shape, from the header of the safetensors file."""
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = stream.read(size) if size < MAX_HEADER_BYTES else b""
    try:
        entries = json.loads(header)
        return {
            current_tensor_name(name, prefix): [int(size) for size in entry["shape"]]
            for name, entry in entries.items()
            if name != "__metadata__"
        }
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError) as broken:
        raise CheckpointError(
            "damaged weights: no safetensors header", where=str(path), remedy="fetch the file again"
        ) from broken


def validated_tensor(
    tensors: Tensors, name: str, shape: tuple[int, ...], where: str
) -> NDArray[np.float32]:
    """Return the tensor `name` as float32; CheckpointError unless it is finite and has `shape`."""
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
            f"weights {name} are not finite",
            where=where,
            found="NaN or infinity",
            remedy="fetch the model again, or save it again",
        )
    return value.astype(np.float32, copy=False)


def read_tensors(path: Path, prefix: str) -> Tensors:
    """Return tensor name without `prefix` → array; bfloat16 and int8 are widened to float32.

    Other types are returned as stored; `validated_tensor` widens them. Raises CheckpointError if
    the file is damaged or holds an unsupported type.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        loaded = _load_bfloat16(path) or load_file(path)
    except SafetensorError as broken:
        raise CheckpointError(
            f"damaged weights: {broken}", where=str(path), remedy="fetch the file again"
        ) from broken
    except (AttributeError, KeyError, TypeError) as unknown:
        raise CheckpointError(
            f"weights of a type that numpy does not support: {unknown}",
            where=str(path),
            wanted="float32, float16, bfloat16, float64, or int8 with scales",
            remedy="save the model again as float32",
        ) from unknown
    widened = {n: _widened(loaded, n, path) for n in loaded if not _is_scale(loaded, n)}
    return {current_tensor_name(name, prefix): value for name, value in widened.items()}


def _load_bfloat16(path: Path) -> dict[str, NDArray[Any]]:
    """Return all tensors if any is bfloat16, otherwise {}.

    numpy has no bfloat16, whose bits are the upper half of a float32.
    """
    from safetensors import deserialize, safe_open

    with safe_open(path, framework="numpy") as file:
        dtypes = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
        if "BF16" not in dtypes.values():
            return {}
        tensors = {n: file.get_tensor(n) for n, dtype in dtypes.items() if dtype != "BF16"}
    for name, tensor in deserialize(path.read_bytes()):  # type: ignore[no-untyped-call]
        if dtypes[name] == "BF16":
            bits = np.frombuffer(tensor["data"], "<u2").astype(np.uint32) << 16
            tensors[name] = bits.view(np.float32).reshape(tensor["shape"])
    return tensors


def _is_scale(loaded: Tensors, name: str) -> bool:
    scaled = loaded.get(name.removesuffix(SCALE)) if name.endswith(SCALE) else None
    return scaled is not None and scaled.dtype == np.int8


def _widened(loaded: Tensors, name: str, path: Path) -> NDArray[Any]:
    """Return the tensor `name`; int8 is multiplied by its scales.

    Raises CheckpointError if the scales are missing, not finite, or of the wrong shape.
    """
    value, scale = loaded[name], loaded.get(name + SCALE)
    if value.dtype != np.int8:
        return value
    if scale is None or scale.shape != value.shape[:1] or not np.isfinite(scale).all():
        raise CheckpointError(
            f"int8 weights {name} without their scales",
            where=str(path),
            wanted=f"{name}{SCALE}, finite, of shape {value.shape[:1]}",
            found="none" if scale is None else f"shape {scale.shape}",
            remedy="quantize the model again (birchbark model quantize)",
        )
    return value * scale.astype(np.float32).reshape(-1, *[1] * (value.ndim - 1))


def quantize_rows(matrix: Float32s, max_value: int = 127) -> tuple[NDArray[np.int8], Float32s]:
    """Quantize each row of a float32 matrix to int8 with its own scale.

    Returns int8 (rows, columns) in ±`max_value`, and the scales, float32 (rows,).
    """
    scale = np.maximum(np.abs(matrix).max(axis=1), MIN_SCALE) / np.float32(max_value)
    return np.rint(matrix / scale[:, None]).astype(np.int8), scale


def current_tensor_name(stored: str, prefix: str) -> str:
    """Return a tensor's name without `prefix`, as current models have it.

    Early models call the weight and bias of layer normalisation gamma and beta.
    """
    name = re.sub(r"(?<=LayerNorm\.)gamma$", "weight", stored.removeprefix(prefix))
    return re.sub(r"(?<=LayerNorm\.)beta$", "bias", name)
