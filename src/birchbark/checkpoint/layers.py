"""Which layers turn the vector of a text into the one that is compared, or into a logit?

A family's classifier has its layers in the model's own weights. Those of sentence-transformers'
modules (Dense, LayerNorm, Normalize in modules.json) have folders of their own, each with
config.json and, unless it is Normalize, model.safetensors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.modules import (
    DENSE,
    DROPOUT,
    LAYER_NORM,
    check_values,
    read_module,
)
from birchbark.checkpoint.weights import Tensors, find_weights, read_tensor_shapes, read_tensors
from birchbark.errors import CheckpointError

ACTIVATIONS = {  # torch's → ours
    "Identity": "",
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "SiLU": "silu",
    "Sigmoid": "sigmoid",
}
TEXT_VECTOR, TOKEN_VECTORS = "sentence_embedding", "token_embeddings"  # what modules read
SCORES = "scores"  # what the last module of a cross-encoder writes
EPSILON = 1e-5  # of torch's LayerNorm
PREFIXES = {DENSE: "linear.", LAYER_NORM: "norm."}  # of a module's tensors


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer and an activation.

    Attributes:
        name: Name of the linear layer among the model's tensors.
        inputs: Width of the vector that it reads.
        outputs: Width of the vector that it returns.
        bias: Whether it has a bias.
        activation: Name of the activation; empty if there is none.
        residual: What is added after the activation: "input" for the vector that was read,
            "projected" for its product with the matrix NAME.residual; empty for nothing.
        folder: Folder of the module, relative to the model directory; empty if it is none.
    """

    name: str
    inputs: int
    outputs: int
    bias: bool
    activation: str
    residual: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Layer normalisation.

    Attributes:
        name: Its name among the model's tensors.
        outputs: Width of the vector.
        epsilon: Constant that is added to the variance.
        folder: See Dense.
    """

    name: str
    outputs: int
    epsilon: float
    folder: str = ""


@dataclass(frozen=True, slots=True)
class UnitLength:
    """Scales vectors to length 1.

    Attributes:
        outputs: Width of the vector.
        folder: See Dense.
    """

    outputs: int
    folder: str = ""


Layer = Dense | LayerNorm | UnitLength


def read_layers(
    root: Path, modules: Sequence[tuple[str, str]], width: int, vectors: str = TEXT_VECTOR
) -> tuple[tuple[Layer, ...], bool]:
    """Return the layers of these modules of a model, and whether the last one gives scores.

    modules: type and folder of the modules after the pooling, in order. width: that of the vectors
    that the first one reads. vectors: whether these are TEXT_VECTOR or TOKEN_VECTORS. Raises
    CheckpointError if settings or weights are missing, unsupported or contradict each other.
    """
    layers: list[Layer] = []
    written = vectors
    for number, (kind, folder) in enumerate(m for m in modules if m[0] != DROPOUT):
        path, config = read_module(root, folder)
        default = vectors if kind == DENSE else TEXT_VECTOR
        read = config.get("module_input_name", default) if written != SCORES else written
        written = config.get("module_output_name") or read
        last = (vectors, SCORES) if (kind, vectors) == (DENSE, TEXT_VECTOR) else (vectors,)
        names = {"module_input_name": read, "module_output_name": written}
        check_values(path, names, {"module_input_name": (vectors,), "module_output_name": last})
        match kind:
            case "Dense":
                layers.append(_dense(root, folder, number, width))
            case "LayerNorm":
                layers.append(_layer_norm(root, folder, number, width))
            case _:
                layers.append(UnitLength(width, folder))
        width = layers[-1].outputs
    return tuple(layers), written == SCORES


def _dense(root: Path, folder: str, number: int, width: int) -> Dense:
    """Return the Dense module in `folder`. width: that of the vectors that it reads."""
    path = root / folder / "config.json"
    config = read_object(path)
    stated = str(config.get("activation_function", "torch.nn.Tanh"))
    activation = re.sub(r"^torch\.nn\.(modules\.\w+\.)?", "", stated)
    shapes = read_tensor_shapes(find_weights(root / folder), PREFIXES[DENSE])
    shape = shapes.get("weight", [])
    found = {
        "activation_function": activation,
        "use_residual": config.get("use_residual", False),
        "number of inputs": shape[1] if len(shape) == 2 else None,
        "in_features": config.get("in_features", width),
        "bias": config.get("bias", "bias" in shapes),
        "out_features": config.get("out_features", shape[0] if shape else None) or None,
    }
    supported: dict[str, tuple[object, ...]] = {
        "activation_function": tuple(ACTIVATIONS),
        "use_residual": (False, True),
        "number of inputs": (width,),
        "in_features": (width,),
        "bias": ("bias" in shapes,),
        "out_features": tuple(shape[:1]),
    }
    check_values(path, found, supported)
    residual = ""
    if config.get("use_residual"):
        residual = "input" if shape[0] == width else "projected"
    return Dense(
        f"dense.{number}",
        width,
        shape[0],
        "bias" in shapes,
        ACTIVATIONS[activation],
        residual,
        folder,
    )


def _layer_norm(root: Path, folder: str, number: int, width: int) -> LayerNorm:
    """Return the LayerNorm module in `folder`; see `_dense`."""
    shapes = read_tensor_shapes(find_weights(root / folder), PREFIXES[LAYER_NORM])
    for name in ("weight", "bias"):
        if shapes.get(name) != [width]:
            raise CheckpointError(
                f"unsupported {LAYER_NORM}",
                where=str(root / folder),
                wanted=f"norm.{name} of shape {[width]}",
                found=str(shapes.get(name)),
            )
    return LayerNorm(f"norm.{number}", width, EPSILON, folder)


def layer_files(root: Path, layers: Sequence[Layer]) -> list[Path]:
    """Return the files of modules: the configuration and the weights of each, as far as it has."""
    files: list[Path] = []
    for layer in layers:
        folder = root / layer.folder
        if layer.folder and not isinstance(layer, UnitLength):
            settings = folder / "config.json"
            files += [*([settings] if settings.exists() else []), find_weights(folder)]
    return files


def read_layer_tensors(root: Path, layers: Sequence[Layer]) -> Tensors:
    """Return the tensors of modules, with the names of their layers."""
    tensors: dict[str, NDArray[np.float32]] = {}
    for layer in layers:
        if layer.folder and not isinstance(layer, UnitLength):
            prefix = PREFIXES[DENSE if isinstance(layer, Dense) else LAYER_NORM]
            stored = read_tensors(find_weights(root / layer.folder), prefix)
            tensors |= {f"{layer.name}.{name}": value for name, value in stored.items()}
    return tensors
