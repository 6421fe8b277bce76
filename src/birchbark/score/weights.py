"""How are weights read from safetensors, and why from nothing else?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import CheckpointError

Tensors = Mapping[str, NDArray[np.float32]]

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
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


def read_tensors(path: Path, prefix: str) -> Tensors:
    """All weights by their names without `prefix`, as they are stored."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        loaded = load_file(path)
    except SafetensorError as broken:
        raise CheckpointError(
            f"damaged weights: {broken}", where=str(path), remedy="fetch the file again"
        ) from broken
    except (AttributeError, KeyError, TypeError) as unknown:  # numpy has no bfloat16
        raise CheckpointError(
            f"weights of a type that numpy does not know: {unknown}",
            where=str(path),
            wanted="float32, float16 or float64",
            remedy="save the model again as float32",
        ) from unknown
    return {todays_name(name, prefix): value for name, value in loaded.items()}


def todays_name(stored: str, prefix: str) -> str:
    """A tensor's name without prefix; norms of early checkpoints have gamma and beta."""
    name = re.sub(r"(?<=LayerNorm\.)gamma$", "weight", stored.removeprefix(prefix))
    return re.sub(r"(?<=LayerNorm\.)beta$", "bias", name)
