"""Which linear layers follow the pooling of a sentence-transformers model?

Modules of type Dense in modules.json: a linear layer and an activation, each in a folder with
config.json and model.safetensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.weights import Tensors, find_weights, read_tensor_shapes, read_tensors
from birchbark.errors import CheckpointError

ACTIVATIONS = {"Identity": "", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu"}  # torch's → ours
INPUT = "sentence_embedding"  # the vector that the modules before it have computed


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer and an activation, applied to a text's vector.

    Attributes:
        folder: Its folder, relative to the model directory.
        name: Name of its linear layer among the model's tensors.
        inputs: Width of the vector that it reads.
        outputs: Width of the vector that it returns.
        bias: Whether it has a bias.
        activation: Name of the activation; empty if there is none.
    """

    folder: str
    name: str
    inputs: int
    outputs: int
    bias: bool
    activation: str


def read_dense(root: Path, folders: list[str], width: int) -> tuple[Dense, ...]:
    """Return the Dense modules in `folders` of the model directory `root`, in order.

    width: that of the pooled vectors. Raises CheckpointError if settings or weights are missing,
    unsupported or contradict each other.
    """
    modules: list[Dense] = []
    for number, folder in enumerate(folders):
        path = root / folder / "config.json"
        config = read_object(path)
        activation = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
        shapes = read_tensor_shapes(find_weights(root / folder), "linear.")
        shape = shapes.get("weight", [])
        for what, found, wanted in (
            ("activation_function", activation, tuple(ACTIVATIONS)),
            ("module_input_name", config.get("module_input_name", INPUT), (INPUT,)),
            ("module_output_name", config.get("module_output_name") or INPUT, (INPUT,)),
            ("use_residual", config.get("use_residual", False), (False,)),
            ("number of inputs", shape[1] if len(shape) == 2 else None, (width,)),
        ):
            if found not in wanted:
                raise CheckpointError(
                    f"unsupported {what}",
                    where=str(path),
                    wanted=" or ".join(map(str, wanted)),
                    found=str(found)[:80],
                )
        name = f"dense.{number}"
        bias = "bias" in shapes
        modules.append(Dense(folder, name, width, shape[0], bias, ACTIVATIONS[activation]))
        width = shape[0]
    return tuple(modules)


def dense_files(root: Path, modules: tuple[Dense, ...]) -> list[Path]:
    """Return the files of the modules: the configuration and the weights of each."""
    folders = [root / module.folder for module in modules]
    return [path for folder in folders for path in (folder / "config.json", find_weights(folder))]


def read_dense_tensors(root: Path, modules: tuple[Dense, ...]) -> Tensors:
    """Return the tensors of the modules, with the names of their linear layers."""
    return {
        f"{module.name}.{name}": value
        for module in modules
        for name, value in read_tensors(find_weights(root / module.folder), "linear.").items()
    }
