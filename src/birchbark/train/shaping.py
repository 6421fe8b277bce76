"""How does a checkpoint become a network that learns, and which parts of it learn?

Weights are read by score/, so all that ranks can be the base of a training as well: embeddings,
packed weights, two logits, any family. A head that the base lacks is drawn by chance.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import CheckpointError, InputError
from birchbark.score.checkpoint import Checkpoint
from birchbark.score.families import Family
from birchbark.score.heads import Classifier, Pooling
from birchbark.score.shape import Shape
from birchbark.score.weights import Tensors, sound
from birchbark.train.network import Network

PARTS = ("all", "encoder", "head")
SPREAD = 0.02  # standard deviation of a new head's weights, as in Devlin 2019


@dataclass(frozen=True, slots=True)
class Shaping:
    """What of the base is kept, and what of it learns.

    layers: the first so many; None for all. learns: `all`; `encoder`, all but the word embeddings;
    `head`, what stands on [CLS]. dropout: of hidden values and attention.
    """

    layers: int | None = None
    learns: str = "all"
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.learns not in PARTS:
            raise InputError(f"unknown part {self.learns!r}", remedy=f"one of {', '.join(PARTS)}")
        if not 0 <= self.dropout < 1:
            raise InputError("dropout is out of range", wanted="0 up to 1", found=str(self.dropout))


def open_base(directory: Path, name: str) -> Checkpoint:
    """The checkpoint that a training starts from, whatever head it has or lacks."""
    try:
        return Checkpoint.open(directory, name)
    except CheckpointError as fault:
        if fault.what != "unknown head":
            raise
        return Checkpoint.open(directory, name, Pooling("cls"))


def open_network(base: Checkpoint, shaping: Shaping, seed: int, device: Any) -> Network:
    """A network of one logit with the weights of `base`, in float32 on `device`.

    seed: of a new head. Raises InputError for more layers than there are, and CheckpointError for
    weights that are missing, of another shape or no numbers.
    """
    import torch

    shape = _shape(base, shaping.layers)
    chance = np.random.default_rng(seed)
    weights = {}
    for name, value in _values(base, shape, chance):
        # copied to where torch aligns it: some products' last bits depend on the place in memory
        weight = torch.tensor(np.asarray(value, np.float32)).to(device)
        weights[name] = weight.requires_grad_(_learns(name, base.family, shaping.learns))
    return Network(weights, shape, base.family, shaping.dropout)


def _shape(base: Checkpoint, layers: int | None) -> Shape:
    """The base's sizes with its first `layers`."""
    most = base.shape.layers
    if layers is None or layers == most:
        return base.shape
    if base.shape.groups < most:
        raise InputError(
            "layers that share weights cannot be left out",
            where=base.name,
            wanted=f"{most} layers",
            found=str(layers),
        )
    if layers > most:
        raise InputError(
            "no such number of layers", where=base.name, wanted=f"1 to {most}", found=str(layers)
        )
    return replace(base.shape, layers=layers, groups=layers)


def _values(
    base: Checkpoint, shape: Shape, chance: np.random.Generator
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Name and value of each weight that the network has."""
    stored, family, where = _with_one_logit(base), base.family, str(base.weights)
    names = family.names
    tables = (names.words, names.positions, names.types)
    for module, sizes in _encoder(family, shape):
        if module == names.widen and f"{module}.weight" not in stored:
            continue  # where the sizes are equal, some have none
        yield f"{module}.weight", sound(stored, f"{module}.weight", sizes, where)
        if module not in tables:
            yield f"{module}.bias", sound(stored, f"{module}.bias", sizes[:1], where)
    for module, outputs in ((family.transform[0], shape.hidden), (family.logits, 1)):
        for kind, size in (("weight", (outputs, shape.hidden)), ("bias", (outputs,))):
            name = f"{module}.{kind}"
            if name in stored and stored[name].shape == size:
                yield name, sound(stored, name, size, where)
            else:
                yield name, chance.normal(0, SPREAD, size) if kind == "weight" else np.zeros(size)


def _encoder(family: Family, shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Modules of the encoder, each once, with the sizes of their weights."""
    seen = set()
    for layer in range(shape.layers):
        for part, pattern in asdict(family.names).items():
            inside = any(field for _, field, _, _ in string.Formatter().parse(pattern))
            module = pattern.format(i=layer, group=shape.group(layer))
            if not module or module in seen or (layer and not inside):
                continue
            seen.add(module)
            yield module, _sizes(part, shape)


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
        return name.startswith((family.transform[0], family.logits))
    return part == "all" or not name.startswith(family.names.words)
