"""What is in a model directory? Its shape, its head and its weights, read without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import fingerprint
from birchbark.errors import CheckpointError

Tensors = Mapping[str, NDArray[np.float32]]

KNOWN = ("bert",)
ACTIVATIONS = ("gelu",)
MODULES = {"Transformer", "Pooling", "Normalize"}
PICKLES = ("pytorch_model.bin", "model.pt", "model.ckpt")


class Head(Enum):
    """What stands on top of the encoder."""

    MEAN = "mean of the last layer's token vectors: an embedding"
    ONE_LOGIT = "one logit: log-odds of relevance"
    TWO_LOGITS = "two logits, not relevant and relevant"


@dataclass(frozen=True, slots=True)
class Shape:
    """The encoder's sizes, by BERT's own names for them."""

    layers: int
    hidden: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A BERT model on disk.

    name: what people call it. max_length counts tokens of an input, special tokens included.
    """

    directory: Path
    name: str
    shape: Shape
    head: Head
    max_length: int

    @classmethod
    def open(cls, directory: Path | str, name: str | None = None) -> Checkpoint:
        """Read what `directory` holds, weights aside. name: the directory's, if not given.

        Raises CheckpointError if it is no model directory, if the architecture or head is not known
        (the message lists those that are), or if the weights are a pickle.
        """
        directory = Path(directory)
        config = _json(directory / "config.json")
        kind = config.get("model_type")
        if kind not in KNOWN:
            raise CheckpointError(
                "unknown architecture",
                where=str(directory),
                wanted=" or ".join(KNOWN),
                found=str(kind),
            )
        if config.get("hidden_act", "gelu") not in ACTIVATIONS:
            raise CheckpointError(
                "unknown activation",
                where=str(directory),
                wanted=" or ".join(ACTIVATIONS),
                found=str(config["hidden_act"]),
            )
        try:
            shape = Shape(
                layers=int(config["num_hidden_layers"]),
                hidden=int(config["hidden_size"]),
                heads=int(config["num_attention_heads"]),
                intermediate=int(config["intermediate_size"]),
                vocabulary=int(config["vocab_size"]),
                positions=int(config["max_position_embeddings"]),
                types=int(config.get("type_vocab_size", 2)),
                epsilon=float(config.get("layer_norm_eps", 1e-12)),
            )
        except KeyError as missing:
            raise CheckpointError(
                f"config.json says nothing of {missing}", where=str(directory)
            ) from None
        except (TypeError, ValueError) as wrong:
            raise CheckpointError(
                f"wrong value in config.json: {wrong}", where=str(directory)
            ) from None
        _check(shape, config, directory)
        weights = _weights_file(directory)
        head, max_length = _head(directory, weights), _max_length(directory, shape)
        return cls(directory, name or directory.name, shape, head, max_length)

    @property
    def weights(self) -> Path:
        """The safetensors file."""
        return _weights_file(self.directory)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over configuration, vocabulary and weights: equal for equal scores."""
        names = ["config.json", "tokenizer.json", "vocab.txt", "sentence_bert_config.json"]
        if not (self.directory / "tokenizer.json").exists():
            names.append("tokenizer_config.json")  # only then is it read
        present = [self.directory / name for name in names if (self.directory / name).exists()]
        return fingerprint(*present, self.weights)

    def tensors(self) -> Tensors:
        """All weights by their names, without the prefix `bert.`, as they are stored."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            loaded = load_file(self.weights)
        except SafetensorError as broken:
            raise CheckpointError(
                f"damaged weights: {broken}", where=str(self.weights), remedy="fetch the file again"
            ) from broken
        return {name.removeprefix("bert."): value for name, value in loaded.items()}


def _check(shape: Shape, config: dict[str, Any], directory: Path) -> None:
    """Refuse shapes that are none, and parts that the graph does not have."""
    sizes = (shape.layers, shape.hidden, shape.heads, shape.intermediate, shape.vocabulary)
    if min(*sizes, shape.positions, shape.types) < 1 or shape.hidden % shape.heads:
        raise CheckpointError("sizes in config.json do not fit together", where=str(directory))
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise CheckpointError(
            "unknown position embeddings", where=str(directory), wanted="absolute", found=positions
        )
    modules = directory / "modules.json"
    listed = json.loads(modules.read_bytes()) if modules.exists() else []
    kinds = {str(module.get("type", "")).rpartition(".")[2] for module in listed}
    if unknown := kinds - MODULES:
        raise CheckpointError(
            "unknown module in modules.json",
            where=str(directory),
            wanted=", ".join(sorted(MODULES)),
            found=", ".join(sorted(unknown)),
        )


def _json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(
            "not a model directory", where=str(path.parent), remedy=f"there is no {path.name} in it"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as broken:
        raise CheckpointError(f"not valid JSON: {broken}", where=str(path)) from broken
    if not isinstance(values, dict):
        raise CheckpointError("not a JSON object", where=str(path))
    return values


def _weights_file(directory: Path) -> Path:
    path = directory / "model.safetensors"
    if path.exists():
        return path
    pickle = next((name for name in PICKLES if (directory / name).exists()), None)
    if pickle:
        raise CheckpointError(
            f"the weights are a pickle ({pickle}), which can run any code when loaded",
            where=str(directory),
            remedy="where you trust it, load it with transformers and save_pretrained it again: "
            "that writes model.safetensors",
        )
    raise CheckpointError("no model.safetensors", where=str(directory))


def _head(directory: Path, weights: Path) -> Head:
    shapes = _shapes(weights)
    classifier = shapes.get("classifier.weight")
    if classifier is not None and classifier[0] in (1, 2):
        return Head.ONE_LOGIT if classifier[0] == 1 else Head.TWO_LOGITS
    pooling = directory / "1_Pooling" / "config.json"
    if pooling.exists() and _json(pooling).get("pooling_mode_mean_tokens"):
        return Head.MEAN
    raise CheckpointError(
        "unknown head",
        where=str(directory),
        wanted="a classifier of one or two logits, or mean pooling (1_Pooling/config.json)",
        found=f"a classifier of {classifier[0]} logits" if classifier else "neither",
    )


def _shapes(weights: Path) -> dict[str, list[int]]:
    """Tensor name → shape, from the header of the safetensors file."""
    with weights.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = stream.read(size) if size < 100_000_000 else b""
    try:
        entries = json.loads(header)
        return {name: e["shape"] for name, e in entries.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError) as broken:
        raise CheckpointError(
            "damaged weights: no safetensors header",
            where=str(weights),
            remedy="fetch the file again",
        ) from broken


def _max_length(directory: Path, shape: Shape) -> int:
    path = directory / "sentence_bert_config.json"
    stated = _json(path).get("max_seq_length") if path.exists() else None
    return min(int(stated or shape.positions), shape.positions)
