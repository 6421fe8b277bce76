"""How does a checkpoint become a network that learns, and which parts of it learn?

Weights are read by checkpoint/, so all that ranks can be the base of a training as well:
embeddings, packed weights, two logits, any family. A head that the base lacks is drawn by chance.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.families import Family
from birchbark.checkpoint.heads import (
    HOWS,
    MODES,
    PARADE_LAYERS,
    PARADE_NAMES,
    PARADE_WEIGHTS,
    Classifier,
    Parade,
)
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.shape import Shape
from birchbark.checkpoint.weights import Tensors, sound
from birchbark.errors import InputError
from birchbark.train.network import Form, Network

PARTS = ("all", "encoder", "head")
SPREAD = 0.02  # standard deviation of a new head's weights, as in Devlin 2019


@dataclass(frozen=True, slots=True)
class Shaping:
    """What of the base is kept, and what of it learns.

    layers: the first so many; None for all. from_layers: which of the base's instead, counted from
    1. hidden, heads, intermediate: the first so many of each, heads as wide as they were; None for
    all. learns: `all`;
    `encoder`, all but the word embeddings; `head`, what stands on [CLS]. dropout: of hidden values
    and attention. parade: how passages become documents, one of HOWS; None for a cross-encoder.
    pooling: of a bi-encoder, which reads query and text apart; None for others.
    duo: whether it reads two texts, and compares them. masked: whether it says which tokens were
    hidden from it, and has no logit.
    """

    layers: int | None = None
    learns: str = "all"
    dropout: float = 0.1
    from_layers: tuple[int, ...] = ()
    hidden: int | None = None
    heads: int | None = None
    intermediate: int | None = None
    parade: str | None = None
    pooling: str | None = None
    duo: bool = False
    masked: bool = False

    def __post_init__(self) -> None:
        if self.learns not in PARTS:
            raise InputError(f"unknown part {self.learns!r}", remedy=f"one of {', '.join(PARTS)}")
        if not 0 <= self.dropout < 1:
            raise InputError("dropout is out of range", wanted="0 up to 1", found=str(self.dropout))
        if self.parade and self.parade not in HOWS:
            raise InputError(
                f"unknown aggregation {self.parade!r}", remedy=f"one of {', '.join(HOWS)}"
            )
        if self.pooling and self.pooling not in MODES:
            raise InputError(
                f"unknown pooling {self.pooling!r}", remedy=f"one of {', '.join(MODES)}"
            )
        if self.pooling and (self.parade or self.learns == "head"):
            raise InputError(
                "pooling makes a bi-encoder, which has no head and no passages",
                found=f"parade {self.parade!r}" if self.parade else 'learns "head"',
            )
        if self.layers and self.from_layers:
            raise InputError("layers and from_layers say the same", remedy="choose one of them")

    @property
    def form(self) -> Form:
        """What it reads and says."""
        return Form(self.parade, self.pooling, self.duo, self.masked)

    def sources(self, most: int) -> tuple[int, ...]:
        """Which of the base's layers, counted from 0, the network's layers begin with."""
        if self.from_layers:
            return tuple(layer - 1 for layer in self.from_layers)
        return tuple(range(most if self.layers is None else self.layers))


def open_network(base: Checkpoint, shaping: Shaping, seed: int, device: Any) -> Network:
    """A network of one logit with the weights of `base`, in float32 on `device`.

    seed: of a new head. Raises InputError for more than there is of anything, and CheckpointError
    for weights that are missing, of another shape or no numbers.
    """
    import torch

    shape = _shape(base, shaping)
    chance = np.random.default_rng(seed)
    weights = {}
    values = _encoder_values(base, shape, shaping.sources(base.shape.layers))
    head = _masked_head if shaping.masked else _logit_head
    own = () if shaping.pooling else head(base, shape, chance)
    heads = (*own, *_aggregating(base, shape, shaping.parade, chance))
    for name, value in (*values, *heads):
        # copied to where torch aligns it: some products' last bits depend on the place in memory
        weight = torch.tensor(np.asarray(value, np.float32)).to(device)
        weights[name] = weight.requires_grad_(_learns(name, base.family, shaping.learns))
    return Network(
        weights,
        shape,
        base.family,
        shaping.dropout,
        shaping.form,
    )


def _shape(base: Checkpoint, shaping: Shaping) -> Shape:
    """The base's sizes, with what is left of them."""
    most, sources = base.shape, shaping.sources(base.shape.layers)
    count = len(sources)
    if sources != tuple(range(most.layers)) and most.groups < most.layers:
        raise InputError(
            "layers that share weights cannot be left out",
            where=base.name,
            wanted=f"{most.layers} layers",
            found=str(count),
        )
    if not all(0 <= layer < most.layers for layer in sources):
        raise InputError(
            "no such number of layers",
            where=base.name,
            wanted=f"1 to {most.layers}",
            found=str(max(sources) + 1),
        )
    sizes = {name: getattr(shaping, name) for name in ("hidden", "heads", "intermediate")}
    sizes = {name: size or getattr(most, name) for name, size in sizes.items()}
    for name, size in sizes.items():
        if size > getattr(most, name):
            raise InputError(
                f"{name} is more than the base has",
                where=base.name,
                wanted=f"1 to {getattr(most, name)}",
                found=str(size),
            )
    if sizes["hidden"] * most.heads != most.hidden * sizes["heads"]:
        raise InputError(
            "heads must stay as wide as they are",
            where=base.name,
            wanted=f"{most.hidden // most.heads} of hidden for each of heads",
            found=f"{sizes['hidden']} for {sizes['heads']}",
        )
    embedding = sizes["hidden"] if most.embedding == most.hidden else most.embedding
    groups = count if most.groups == most.layers else most.groups
    return replace(most, layers=count, groups=groups, embedding=embedding, **sizes)


def _encoder_values(
    base: Checkpoint, shape: Shape, sources: tuple[int, ...]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Name and value of each weight of the encoder; of wider ones the first part."""
    stored, family, where = base.tensors(), base.family, str(base.weights)
    names, most = family.names, base.shape
    tables = (names.words, names.positions, names.types)
    whole = {m: sizes for m, _, sizes in _encoder(family, most, tuple(range(most.layers)))}
    for module, source, sizes in _encoder(family, shape, sources):
        if source == names.widen and f"{source}.weight" not in stored:
            continue  # where the sizes are equal, some have none
        value = sound(stored, f"{source}.weight", whole[source], where)
        yield f"{module}.weight", _first(value, sizes)
        if module not in tables:
            value = sound(stored, f"{source}.bias", whole[source][:1], where)
            yield f"{module}.bias", _first(value, sizes[:1])


def _first(value: NDArray[Any], sizes: tuple[int, ...]) -> NDArray[Any]:
    """The first so many of each dimension."""
    return value if value.shape == sizes else value[tuple(map(slice, sizes))].copy()


def _logit_head(
    base: Checkpoint, shape: Shape, chance: np.random.Generator
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Name and value of what makes a logit of [CLS]: the base's, or drawn."""
    stored, family, hidden = _with_one_logit(base), base.family, base.shape.hidden
    for module, outputs, left in (
        (family.transform[0], hidden, shape.hidden),
        (family.logits, 1, 1),
    ):
        for kind, inner, own in (("weight", (hidden,), (shape.hidden,)), ("bias", (), ())):
            name, size, kept = f"{module}.{kind}", (outputs, *inner), (left, *own)
            if name in stored and stored[name].shape == size:
                yield name, _first(sound(stored, name, size, str(base.weights)), kept)
            else:
                yield name, chance.normal(0, SPREAD, kept) if own else np.zeros(kept)


def _masked_head(
    base: Checkpoint, shape: Shape, chance: np.random.Generator
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Name and value of what says which token was hidden: the base's, or drawn."""
    stored, head, width = base.tensors(), base.family.masked, shape.embedding
    for name, size, whole in (
        (f"{head.linear}.weight", (width, shape.hidden), (base.shape.embedding, base.shape.hidden)),
        (f"{head.linear}.bias", (width,), (base.shape.embedding,)),
        (f"{head.norm}.weight", (width,), (base.shape.embedding,)),
        (f"{head.norm}.bias", (width,), (base.shape.embedding,)),
        (head.bias, (shape.vocabulary,), (shape.vocabulary,)),
    ):
        if name in stored:
            yield name, _first(sound(stored, name, whole, str(base.weights)), size)
        elif len(size) > 1:
            yield name, chance.normal(0, SPREAD, size)
        else:
            yield name, np.ones(size) if name == f"{head.norm}.weight" else np.zeros(size)


def _aggregating(
    base: Checkpoint, shape: Shape, how: str | None, chance: np.random.Generator
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Name and value of what makes a document of passages: the base's, or drawn.

    Learnt shares begin as equal ones.
    """
    sizes: dict[str, tuple[int, ...]] = {}
    if how == "attn":
        sizes = {PARADE_WEIGHTS[how]: (1, shape.hidden)}
    elif how == "transformer":
        sizes = {PARADE_WEIGHTS[how]: (shape.hidden,)}
        for layer in range(PARADE_LAYERS):
            for part, pattern in asdict(PARADE_NAMES).items():
                if "{i}" in pattern:
                    size = _sizes(part, shape)
                    module = pattern.format(i=layer)
                    sizes |= {f"{module}.weight": size, f"{module}.bias": size[:1]}
    stored = base.tensors() if isinstance(base.head, Parade) else {}
    for name, size in sizes.items():
        if name in stored:
            whole = sound(stored, name, stored[name].shape, str(base.weights))
            yield name, whole[tuple(slice(length) for length in size)].copy()
        elif name.endswith("LayerNorm.weight"):
            yield name, np.ones(size)
        elif name.endswith(".bias") or how == "attn":
            yield name, np.zeros(size)
        else:
            yield name, chance.normal(0, SPREAD, size)


def _encoder(
    family: Family, shape: Shape, sources: tuple[int, ...]
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Modules of the encoder, each once: its name, its name in the base, sizes of its weights."""
    seen = set()
    for layer in range(shape.layers):
        for part, pattern in asdict(family.names).items():
            inside = any(field for _, field, _, _ in string.Formatter().parse(pattern))
            module = pattern.format(i=layer, group=shape.group(layer))
            if not module or module in seen or (layer and not inside):
                continue
            seen.add(module)
            source = pattern.format(i=sources[layer], group=shape.group(layer))
            yield module, source, _sizes(part, shape)


def _sizes(part: str, shape: Shape) -> tuple[int, ...]:
    """Of the weights of a part of the encoder, as Names calls it; its bias has the first."""
    hidden, width, inner = shape.hidden, shape.embedding, shape.intermediate
    return {
        "words": (shape.vocabulary, width),
        "positions": (shape.positions, width),
        "types": (shape.types, width),
        "embedded": (width,),
        "widen": (hidden, width),
        "attended_norm": (hidden,),
        "inner": (inner, hidden),
        "outer": (hidden, inner),
        "outer_norm": (hidden,),
    }.get(part, (hidden, hidden))


def _with_one_logit(base: Checkpoint) -> Tensors:
    """The stored weights; of two logits, their difference stands in the classifier's place."""
    stored, head = dict(base.tensors()), base.head
    if isinstance(head, Classifier) and head.logits == 2:
        for kind in ("weight", "bias"):
            stored[f"{base.family.logits}.{kind}"] = head.one_logit(stored[f"{head.output}.{kind}"])
    return stored


def _learns(name: str, family: Family, part: str) -> bool:
    """Whether the weights `name` get gradients."""
    if part == "head":
        masked = family.masked
        own = family.transform[0], family.logits, "parade.", masked.linear, masked.norm, masked.bias
        return name.startswith(own)
    return part == "all" or not name.startswith(family.names.words)
