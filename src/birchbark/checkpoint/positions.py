"""How does an encoder know where a token is, if not by embeddings of positions?

Rotary: queries and keys are rotated by an angle in proportion to their position (Su et al. 2021).
In ModernBERT, some layers attend only to tokens within a window (Warner et al. 2024). Relative:
attention scores contain products with embeddings of the distance between two tokens (DeBERTa; He et
al. 2021).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import CheckpointError
from birchbark.records import Float32s

GLOBAL, LOCAL = "full_attention", "sliding_attention"
ROTARY_BASES = {GLOBAL: ("global_rope_theta", 160_000.0), LOCAL: ("local_rope_theta", 10_000.0)}
RELATIVE_TERMS = {"c2p", "p2c"}  # query with distance, and key with distance


@dataclass(frozen=True, slots=True)
class RotaryPositions:
    """The angles and windows of each layer.

    Attributes:
        bases: For each layer, θ; dimension pair d of D / 2 turns by θ^(-2d / D) per position.
        windows: For each layer, the largest distance between tokens that attend to each other; 0
            for no limit.
    """

    bases: tuple[float, ...]
    windows: tuple[int, ...]

    @property
    def kinds(self) -> list[str]:
        """The kind of each layer, as config.json names it."""
        return [LOCAL if window else GLOBAL for window in self.windows]

    def of_layers(self, layers: tuple[int, ...]) -> RotaryPositions:
        """Return the positions of an encoder that consists of these layers."""
        return RotaryPositions(
            tuple(self.bases[i] for i in layers), tuple(self.windows[i] for i in layers)
        )


@dataclass(frozen=True, slots=True)
class RelativePositions:
    """Which embedding belongs to which distance.

    Attributes:
        span: Half the number of embeddings; row `span` is that of distance 0.
        buckets: Half the number of distances that have embeddings of their own; beyond that, ranges
            of distances share one, whose size grows with the distance. 0 if none share.
        longest: The distance that the last embedding stands for.
        normalised: Whether the embeddings are normalised before use.
    """

    span: int
    buckets: int
    longest: int
    normalised: bool

    def rows(self, length: int) -> NDArray[np.int64]:
        """Return the embedding of each distance from 1 - `length` to `length` - 1.

        int64 (2 · length - 1,). A distance is the query's position minus the key's.
        """
        distances = np.arange(1 - length, length)
        rows = distances.copy()
        if self.buckets:
            middle = self.buckets // 2
            size = np.maximum(np.abs(distances), 1).astype(np.float32)
            far = np.log(size / np.float32(middle)) / np.log(
                np.float32((self.longest - 1) / middle)
            )
            shared = np.ceil(far * np.float32(middle - 1)) + middle
            rows = np.where(np.abs(distances) <= middle, distances, np.sign(distances) * shared)
        return np.clip(rows + self.span, 0, 2 * self.span - 1).astype(np.int64)


def rotation(base: float, width: int, length: int) -> tuple[Float32s, Float32s]:
    """Return the cosines and sines of the angles at each position, float32 (length, width / 2)."""
    turns = 1.0 / np.float32(base) ** (np.arange(0, width, 2, dtype=np.float32) / np.float32(width))
    angles = np.arange(length, dtype=np.float32)[:, None] * turns.astype(np.float32)
    return np.cos(angles), np.sin(angles)


def read_rotary(config: Mapping[str, Any], layers: int, where: str) -> RotaryPositions:
    """Read ModernBERT's settings from config.json; CheckpointError if they are unsupported."""
    every = config.get("global_attn_every_n_layers", 3)
    if type(every) is not int or every < 1:
        raise _invalid("global_attn_every_n_layers", every, "an integer from 1", where)
    kinds = config.get("layer_types")
    if kinds is None:
        kinds = [LOCAL if i % every else GLOBAL for i in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers or set(kinds) - set(ROTARY_BASES):
        wanted = f"{layers} times {GLOBAL} or {LOCAL}"
        raise _invalid("layer_types", kinds, wanted, where)
    bases = {kind: _base(config, kind, where) for kind in ROTARY_BASES}
    window = config.get("local_attention", 128)
    if type(window) is not int or window < 2:
        raise _invalid("local_attention", window, "an integer from 2", where)
    return RotaryPositions(
        tuple(bases[kind] for kind in kinds),
        tuple(window // 2 if kind == LOCAL else 0 for kind in kinds),
    )


def _base(config: Mapping[str, Any], kind: str, where: str) -> float:
    """Return θ of the layers of `kind`, which config.json states in one of two formats."""
    key, default = ROTARY_BASES[kind]
    stated = config.get("rope_parameters") or {}
    values = stated.get(kind) if isinstance(stated, dict) else None
    values = values if isinstance(values, dict) else {}
    scaling = config.get("rope_scaling") or values.get("rope_type", "default") != "default"
    if scaling:
        raise _invalid("rope_scaling", scaling, "none", where)
    base = values.get("rope_theta", config.get(key, default))
    if type(base) not in (int, float) or not 1 < base <= sys.float_info.max:
        raise _invalid(key, base, "a number above 1", where)
    return float(base)


def read_relative(config: Mapping[str, Any], positions: int, where: str) -> RelativePositions:
    """Read DeBERTa's settings from config.json; CheckpointError if they are unsupported.

    positions: the maximum number of tokens.
    """
    terms = config.get("pos_att_type") or []
    terms = terms.lower().split("|") if isinstance(terms, str) else terms
    norm = str(config.get("norm_rel_ebd", "none")).strip().lower()
    for key, found, supported in (
        ("relative_attention", config.get("relative_attention", False), (True,)),
        ("position_biased_input", config.get("position_biased_input", True), (False,)),
        ("share_att_key", config.get("share_att_key", False), (True,)),
        ("pos_att_type", {str(term).strip() for term in terms}, (RELATIVE_TERMS,)),
        ("conv_kernel_size", config.get("conv_kernel_size", 0), (0,)),
        ("norm_rel_ebd", norm, ("layer_norm", "none")),
    ):
        if found not in supported:
            raise _invalid(key, found, " or ".join(map(str, supported)), where)
    longest, buckets = config.get("max_relative_positions", -1), config.get("position_buckets", -1)
    for key, value in (("max_relative_positions", longest), ("position_buckets", buckets)):
        if type(value) is not int or value > 2**20 or value in (1, 2, 3):
            raise _invalid(key, value, f"-1, or an integer from 4 to {2**20}", where)
    longest = positions if longest < 1 else longest
    return RelativePositions(
        span=buckets if buckets > 0 else longest,
        buckets=max(buckets, 0),
        longest=longest,
        normalised=norm == "layer_norm",
    )


def _invalid(key: str, found: Any, wanted: str, where: str) -> CheckpointError:
    return CheckpointError(
        f"unsupported value of {key}", where=where, wanted=wanted, found=str(found)[:80]
    )
