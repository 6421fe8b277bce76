"""How large is an encoder, by its config.json?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from birchbark.checkpoint.families import Family
from birchbark.errors import CheckpointError

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
LARGEST = 2**31


@dataclass(frozen=True, slots=True)
class Shape:
    """The encoder's sizes, by BERT's own names for them.

    embedding: width of the embeddings, which differs from `hidden` where they are factorised.
    positions: rows of their table, of which the first `offset` are never used. types: 0 where
    tokens have none. groups: layers are divided evenly among so many sets of weights; `layers`
    where each has its own.
    """

    layers: int
    hidden: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    embedding: int
    offset: int
    groups: int
    activation: str

    @property
    def longest(self) -> int:
        """Tokens that the positions suffice for."""
        return self.positions - self.offset

    def group(self, layer: int) -> int:
        """Whose weights a layer has."""
        return layer * self.groups // self.layers


def read_shape(family: Family, config: Mapping[str, Any], directory: Path) -> Shape:
    """The sizes that `config` states; CheckpointError if one is missing, wrong or unknown."""

    def get(key: str, otherwise: Any = None) -> Any:
        if key in family.fixed:
            return family.fixed[key]
        key = family.keys.get(key, key)
        return config[key] if otherwise is None else config.get(key, otherwise)

    def size(key: str, otherwise: int | None = None) -> int:
        return whole(get(key, otherwise), family.keys.get(key, key), directory / "config.json")

    try:
        layers, hidden = size("num_hidden_layers"), size("hidden_size")
        shape = Shape(
            layers=layers,
            hidden=hidden,
            heads=size("num_attention_heads"),
            intermediate=size("intermediate_size"),
            vocabulary=size("vocab_size"),
            positions=size("max_position_embeddings"),
            types=size("type_vocab_size", 2),
            epsilon=_epsilon(get("layer_norm_eps", 1e-12), directory),
            embedding=size("embedding_size", hidden) if family.names.widen else hidden,
            offset=size("pad_token_id", 1) + 1 if family.offset else 0,
            groups=size("num_hidden_groups", 1) if "{group}" in family.names.query else layers,
            activation=str(get("hidden_act", family.activation)),
        )
    except KeyError as missing:
        raise CheckpointError(
            f"config.json says nothing of {missing}", where=str(directory)
        ) from None
    _check(shape, family, config, directory)
    return shape


def whole(value: Any, key: str, where: Path) -> int:
    """`value` if it is a whole number that a size can be, else a CheckpointError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST:
        raise CheckpointError(
            f"wrong value of {key}", where=str(where), wanted="a size", found=repr(value)[:40]
        )
    return value


def _epsilon(value: Any, directory: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise CheckpointError(
            "wrong value of layer_norm_eps",
            where=str(directory / "config.json"),
            wanted="a small number",
            found=repr(value)[:40],
        )
    return float(value)


def _check(shape: Shape, family: Family, config: Mapping[str, Any], directory: Path) -> None:
    """Refuse shapes that are none, and parts that the graph does not have."""
    sizes = (shape.layers, shape.hidden, shape.heads, shape.intermediate, shape.vocabulary)
    least = min(*sizes, shape.longest, shape.embedding, shape.groups)
    if (
        least < 1
        or shape.hidden % shape.heads
        or shape.layers % shape.groups
        or (shape.types < 1 and family.names.types)
    ):
        raise CheckpointError("sizes in config.json do not fit together", where=str(directory))
    parts = {
        "activation": (shape.activation, ACTIVATIONS),
        "position embeddings": (config.get("position_embedding_type", "absolute"), ("absolute",)),
        "number of layers in a group": (config.get("inner_group_num", 1), (1,)),
    }
    for what, (found, known) in parts.items():
        if found not in known:
            raise CheckpointError(
                f"unknown {what}",
                where=str(directory),
                wanted=" or ".join(map(str, known)),
                found=str(found),
            )
