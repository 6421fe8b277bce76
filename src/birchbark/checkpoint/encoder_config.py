"""How large is an encoder, according to its config.json?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from birchbark.checkpoint.families import RELATIVE, ROTARY, Family
from birchbark.checkpoint.positions import (
    RelativePositions,
    RotaryPositions,
    read_relative,
    read_rotary,
)
from birchbark.errors import CheckpointError

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
SIZE_LIMIT = 2**31


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The encoder's sizes, in BERT's terms.

    Attributes:
        layers: Number of transformer layers.
        hidden: Hidden size.
        heads: Number of attention heads per layer.
        intermediate: Width of the feed-forward layers.
        vocabulary: Rows of the token embeddings.
        positions: Rows of the position embeddings.
        types: Number of token types; 0 if the family has none.
        epsilon: Constant that layer normalisation adds to the variance.
        embedding: Width of the embeddings; differs from `hidden` if they are factorised (ALBERT).
        offset: Number of position embeddings at the start that are never used (RoBERTa).
        groups: Number of weight sets, each shared by the same number of consecutive layers; equal
            to `layers` if no weights are shared.
        activation: Activation of the feed-forward layers, as config.json names it.
        prenorm: Whether layers normalise their inputs instead of their outputs.
        gated: Whether the feed-forward layers are gated.
        rotary: Angles by which queries and keys are rotated; None if they are not.
        relative: Embeddings of relative positions; None if there are none.
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
    prenorm: bool = False
    gated: bool = False
    rotary: RotaryPositions | None = None
    relative: RelativePositions | None = None

    def as_bert(self, layers: int) -> EncoderConfig:
        """Return the sizes of `layers` layers of the same width as BERT has them."""
        return replace(
            self,
            layers=layers,
            groups=layers,
            prenorm=False,
            gated=False,
            rotary=None,
            relative=None,
        )

    @property
    def attention_scale(self) -> float:
        """The factor of attention scores: 1 / √D, or 1 / √(3 · D) if they are sums of three."""
        return 1 / math.sqrt(self.hidden // self.heads * (3 if self.relative else 1))

    @property
    def max_positions(self) -> int:
        """Maximum number of tokens in an input, by the position embeddings."""
        return self.positions - self.offset

    def group(self, layer: int) -> int:
        """Return the number of the weight set that `layer` uses."""
        return layer * self.groups // self.layers


def read_encoder_config(
    family: Family, config: Mapping[str, Any], directory: Path
) -> EncoderConfig:
    """Read the sizes in config.json; CheckpointError if one is missing, invalid or unsupported."""

    def get(key: str, default: Any = None) -> Any:
        if key in family.fixed:
            return family.fixed[key]
        key = family.keys.get(key, key)
        return config[key] if default is None else config.get(key, default)

    def size(key: str, default: int | None = None) -> int:
        return check_size(get(key, default), family.keys.get(key, key), directory / "config.json")

    where = str(directory / "config.json")
    try:
        layers, hidden = size("num_hidden_layers"), size("hidden_size")
        positions = size("max_position_embeddings")
        encoder = EncoderConfig(
            layers=layers,
            hidden=hidden,
            heads=size("num_attention_heads"),
            intermediate=size("intermediate_size"),
            vocabulary=size("vocab_size"),
            positions=positions,
            types=size("type_vocab_size", 2),
            epsilon=_epsilon(get("layer_norm_eps", 1e-12), directory),
            embedding=size("embedding_size", hidden) if family.names.widen else hidden,
            offset=size("pad_token_id", 1) + 1 if family.offset else 0,
            groups=size("num_hidden_groups", 1) if "{group}" in family.names.query else layers,
            activation=str(get("hidden_act", family.activation)),
            prenorm=family.prenorm,
            gated=family.gated,
            rotary=read_rotary(config, layers, where) if family.positions == ROTARY else None,
            relative=(
                read_relative(config, positions, where) if family.positions == RELATIVE else None
            ),
        )
    except KeyError as missing:
        raise CheckpointError(f"config.json lacks {missing}", where=str(directory)) from None
    _check(encoder, family, config, directory)
    return encoder


def check_size(value: Any, key: str, where: Path) -> int:
    """Return `value` if it is a non-negative integer below 2³¹, else raise CheckpointError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < SIZE_LIMIT:
        raise CheckpointError(
            f"invalid value of {key}",
            where=str(where),
            wanted=f"an integer from 0 to {SIZE_LIMIT - 1}",
            found=repr(value)[:40],
        )
    return value


def _epsilon(value: Any, directory: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise CheckpointError(
            "invalid value of layer_norm_eps",
            where=str(directory / "config.json"),
            wanted="a number from 0 to below 1",
            found=repr(value)[:40],
        )
    return float(value)


def _check(
    encoder: EncoderConfig, family: Family, config: Mapping[str, Any], directory: Path
) -> None:
    """Raise CheckpointError for inconsistent sizes, and for features that graph.py lacks."""
    sizes = (
        encoder.layers,
        encoder.hidden,
        encoder.heads,
        encoder.intermediate,
        encoder.vocabulary,
        encoder.max_positions,
        encoder.embedding,
        encoder.groups,
    )
    if (
        min(sizes) < 1
        or encoder.hidden % encoder.heads
        or encoder.layers % encoder.groups
        or (encoder.types < 1 and family.names.types and not family.optional_types)
        or (encoder.rotary and encoder.hidden // encoder.heads % 2)
    ):
        raise CheckpointError("sizes in config.json contradict each other", where=str(directory))
    features = {
        "activation": (encoder.activation, ACTIVATIONS),
        "position embeddings": (config.get("position_embedding_type", "absolute"), ("absolute",)),
        "number of layers in a group": (config.get("inner_group_num", 1), (1,)),
    }
    for feature, (value, supported) in features.items():
        if value not in supported:
            raise CheckpointError(
                f"unsupported {feature}",
                where=str(directory),
                wanted=" or ".join(map(str, supported)),
                found=str(value),
            )
