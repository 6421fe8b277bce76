"""Do the settings of sentence-transformers fit a model's modules, and are they supported?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.layers import Layer, UnitLength
from birchbark.checkpoint.modules import check_values

SETTINGS = "config_sentence_transformers.json"
EMBEDDING, CROSS_ENCODER = "SentenceTransformer", "CrossEncoder"  # values of model_type


def read_settings(root: Path) -> dict[str, Any]:
    """Return the settings of sentence-transformers for a model; empty if there are none."""
    path = root / SETTINGS
    return read_object(path) if path.exists() else {}


def check_cross_encoder(root: Path) -> None:
    """Raise CheckpointError unless a model whose modules give scores is set to be one."""
    check_values(root / SETTINGS, read_settings(root), {"model_type": (CROSS_ENCODER,)})


def check_embedding(root: Path, layers: tuple[Layer, ...]) -> None:
    """Raise CheckpointError unless vectors are compared by the cosine, and not made sparse.

    layers: of the model, after the pooling. The dot product of vectors of length 1 is a cosine.
    """
    unit = bool(layers) and isinstance(layers[-1], UnitLength)
    supported: dict[str, tuple[object, ...]] = {
        "model_type": (None, EMBEDDING),
        "similarity_fn_name": (None, "cosine", "dot") if unit else (None, "cosine"),
    }
    check_values(root / SETTINGS, read_settings(root), supported)
