"""How is a network initialised from a checkpoint, and which of its weights are trained?

Weights are read by checkpoint/, so every model that can rank can also be trained further: embedding
models, models with packed weights or with two logits, and all supported families. If the base lacks
the head, the head is initialised randomly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.checkpoint.architecture import CLS, PASSAGE_VECTOR_KINDS, Architecture
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.encoder_modules import Size, encoder_modules, module_size
from birchbark.checkpoint.families import Family
from birchbark.checkpoint.heads import (
    PARADE_AGGREGATIONS,
    PARADE_LAYERS,
    PARADE_NAMES,
    PARADE_POSITION_COUNT,
    PARADE_POSITIONS,
    PARADE_WEIGHTS,
    POOLING_MODES,
    Classifier,
    Parade,
    Pooling,
    layers_of,
)
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.checkpoint.weights import Tensors, validated_tensor
from birchbark.errors import InputError
from birchbark.train.network import Network

HEADS = ("base", "new", "new output")
TRAINABLE = ("all", "encoder", "head", "output")
INIT_STD = 0.02  # standard deviation of a new head's weights, as in Devlin 2019
Named = Iterable[tuple[str, NDArray[Any]]]  # names and values of weights
HeadModule = tuple[str, Size, Size]  # name, size in the base, and in the network


@dataclass(frozen=True, slots=True)
class Initialisation:
    """Which weights a network copies from its base, and which of them are trained.

    layers: the number of layers, counted from the first; None for all.
    trainable: `all`; `encoder`, which freezes the word embeddings; or `head`, which trains only the
    layers after the encoder; or `output`, which trains only the last of them.
    dropout: the dropout probability for hidden values and attention weights.
    from_layers: the layers of the base to copy instead, counted from 1.
    hidden, heads, intermediate: how many hidden dimensions, attention heads and intermediate
    dimensions to copy, counted from the first; None for all. The width of a head cannot change.
    head: where the weights of the head come from: `base`, if it has any; `new`, at random; or `new
    output`, of which only the last layer is random.
    parade, passage_vectors, pooling, duo, masked: see Architecture.
    """

    layers: int | None = None
    trainable: str = defaults.LEARNS
    dropout: float = defaults.DROPOUT
    from_layers: tuple[int, ...] = ()
    hidden: int | None = None
    heads: int | None = None
    intermediate: int | None = None
    head: str = defaults.HEAD
    parade: str | None = None
    passage_vectors: str = defaults.PASSAGE_VECTORS
    pooling: str | None = None
    duo: bool = False
    masked: bool = False

    def __post_init__(self) -> None:
        for value, known, kind in (
            (self.trainable, TRAINABLE, "part"),
            (self.head, HEADS, "head"),
            (self.parade, PARADE_AGGREGATIONS, "aggregation"),
            (self.passage_vectors, PASSAGE_VECTOR_KINDS, "passage vector"),
            (self.pooling, POOLING_MODES, "pooling"),
        ):
            if value and value not in known:
                raise InputError(f"unknown {kind} {value!r}", wanted=f"one of {', '.join(known)}")
        if not 0 <= self.dropout < 1:
            raise InputError(
                "dropout is out of range", wanted="at least 0 and below 1", found=str(self.dropout)
            )
        if self.pooling and (self.parade or self._names_head):
            raise InputError(
                "pooling makes a bi-encoder, which has no head and no passages",
                found=f"parade {self.parade!r}" if self.parade else "head",
            )
        if self.layers and self.from_layers:
            raise InputError(
                "layers and from_layers exclude each other", remedy="remove one of them"
            )

    @property
    def _names_head(self) -> bool:
        """Whether a setting concerns the head."""
        return self.trainable in ("head", "output") or self.head != "base"

    @property
    def architecture(self) -> Architecture:
        """The inputs that the network reads, and the output that it computes."""
        return Architecture(self.parade, self.passage_vectors, self.pooling, self.duo, self.masked)

    def source_layers(self, base_layers: int) -> tuple[int, ...]:
        """Return, for each layer of the network, the layer of the base to copy, counted from 0."""
        if self.from_layers:
            return tuple(layer - 1 for layer in self.from_layers)
        return tuple(range(base_layers if self.layers is None else self.layers))


def open_network(
    base: Checkpoint, initialisation: Initialisation, seed: int, device: Any
) -> Network:
    """Return a network with the weights of `base`, in float32 on `device`.

    seed: the seed for the random weights of a new head.
    Raises InputError for sizes larger than the base's, and CheckpointError for weights that are
    missing, not finite or of the wrong shape.
    """
    import torch

    shape = network_shape(base, initialisation)
    rng = np.random.default_rng(seed)
    weights = {}
    encoder = _encoder_values(base, shape, initialisation.source_layers(base.config.layers))
    stored = {} if initialisation.head == "new" else _with_one_logit(base)
    if initialisation.head == "new output":
        stored = {n: w for n, w in stored.items() if not n.startswith(f"{base.family.logits}.")}
    kept: Named = ()
    if initialisation.pooling or initialisation.masked:  # a later training may need it
        kept = _stored_head(base, stored, _transforms(base, shape))
    if initialisation.pooling:
        head_values: Named = ()
    elif initialisation.masked:
        head_values = _masked_head(base, stored, shape, rng)
    else:
        head_values = _logit_head(base, stored, shape, rng)
    if initialisation.parade and initialisation.passage_vectors == CLS:
        transforms = tuple(f"{module}." for module, _, _ in _transforms(base, shape))
        head_values = (named for named in head_values if not named[0].startswith(transforms))
    parade_values = _parade_values(base, stored, shape, initialisation.parade, rng)
    used = dict((*encoder, *head_values, *parade_values))
    for name, value in {**dict(kept), **used}.items():
        # copied to memory that torch aligns: the last bits of some products depend on alignment
        weight = torch.tensor(np.asarray(value, np.float32)).to(device)
        is_trained = name in used and _is_trained(name, base.family, initialisation.trainable)
        weights[name] = weight.requires_grad_(is_trained)
    return Network(weights, shape, base.family, initialisation.dropout, initialisation.architecture)


def network_shape(base: Checkpoint, initialisation: Initialisation) -> EncoderConfig:
    """Return the sizes of the network that `open_network` returns.

    Raises InputError if the base cannot be reduced to them, or has modules after the encoder that
    cannot be trained.
    """
    _check_layers(base, initialisation)
    return _shape(base, initialisation)


def _check_layers(base: Checkpoint, initialisation: Initialisation) -> None:
    """Raise InputError for a base without layers, or with a head that cannot be trained on."""
    if base.family.static:
        raise InputError(
            "a static embedding has no layers to train", where=base.name, wanted="a BERT"
        )
    if initialisation.masked and not base.ties_embeddings:
        raise InputError(
            "[masked] predicts tokens by their embeddings; this base has other weights for it",
            where=base.name,
            wanted="tie_word_embeddings true in config.json",
        )
    if initialisation.pooling and base.prompts:
        raise InputError(
            "a bi-encoder is trained without prompts, with which this base reads texts",
            where=base.name,
            found=repr(base.prompts.query or base.prompts.document)[:80],
            remedy="a copy of the base without those in config_sentence_transformers.json",
        )
    if isinstance(base.head, Pooling):
        kept = bool(initialisation.pooling) or initialisation.masked
    else:
        makes_other = bool(initialisation.pooling) or initialisation.masked
        kept = not makes_other and initialisation.head != "new"
        pools = isinstance(base.head, Classifier) and base.head.reads != "cls"
        if kept and pools and initialisation.parade:
            raise InputError(
                "PARADE reads [CLS] of passages, and the head of this base pools all tokens",
                where=base.name,
                remedy='model.head = "new", or a base whose classifier_pooling is cls',
            )
    if kept and base.multi_vector:
        raise InputError(
            "a model with a vector per token cannot be trained as another",
            where=base.name,
            wanted="an embedding model",
        )
    if kept and any(layer.folder for layer in layers_of(base.head)):
        raise InputError(
            "layers after the pooling cannot be trained",
            where=base.name,
            wanted="a model without Dense or LayerNorm in modules.json",
        )


def _shape(base: Checkpoint, initialisation: Initialisation) -> EncoderConfig:
    """Return the network's sizes. Raises InputError if the base cannot be reduced to them."""
    full, sources = base.config, initialisation.source_layers(base.config.layers)
    count = len(sources)
    if sources != tuple(range(full.layers)) and full.groups < full.layers:
        raise InputError(
            "layers of a base whose layers share weights cannot be left out",
            where=base.name,
            wanted=f"{full.layers} layers",
            found=str(count),
        )
    if not all(0 <= layer < full.layers for layer in sources):
        raise InputError(
            "the base has fewer layers",
            where=base.name,
            wanted=f"1 to {full.layers}",
            found=str(max(sources) + 1),
        )
    if full.prenorm and [n for n, layer in enumerate(sources) if layer == 0] != [0]:
        raise InputError(
            "layer 1 of this base can only be the first: it alone has no norm before attention",
            where=base.name,
            wanted="from_layers that begins with 1, once",
            found=", ".join(str(layer + 1) for layer in sources),
        )
    names = ("hidden", "heads", "intermediate")
    sizes = {name: getattr(initialisation, name) or getattr(full, name) for name in names}
    for name, size in sizes.items():
        if size > getattr(full, name):
            raise InputError(
                f"{name} exceeds that of the base",
                where=base.name,
                wanted=f"1 to {getattr(full, name)}",
                found=str(size),
            )
    if sizes["hidden"] * full.heads != full.hidden * sizes["heads"]:
        raise InputError(
            "the width of an attention head cannot change",
            where=base.name,
            wanted=f"hidden = {full.hidden // full.heads} times heads",
            found=f"hidden = {sizes['hidden']}, heads = {sizes['heads']}",
        )
    embedding = sizes["hidden"] if full.embedding == full.hidden else full.embedding
    groups = count if full.groups == full.layers else full.groups
    rotary = full.rotary and full.rotary.of_layers(sources)
    return replace(full, layers=count, groups=groups, embedding=embedding, rotary=rotary, **sizes)


def _encoder_values(base: Checkpoint, shape: EncoderConfig, sources: tuple[int, ...]) -> Named:
    """Yield the encoder's weights: the first rows and columns of the base's weights.

    Of queries, keys and values in one matrix, or both halves of a gated layer, they are those of
    each.
    """
    stored, family, where = base.tensors(), base.family, str(base.weights)
    names, full = family.names, base.config
    tables = (names.words, names.positions, names.types, names.relative)
    all_layers = tuple(range(full.layers))
    blocks = {names.fused.format(i=i): 3 for i in all_layers}
    if full.gated:
        blocks |= {names.inner.format(i=i, group=full.group(i)): 2 for i in all_layers}
    full_sizes = {module: size for module, _, size in encoder_modules(family, full, all_layers)}
    for module, source, size in encoder_modules(family, shape, sources):
        if source == names.widen and f"{source}.weight" not in stored:
            continue  # some checkpoints omit this projection if both sizes are equal
        value = validated_tensor(stored, f"{source}.weight", full_sizes[source], where)
        yield f"{module}.weight", _first(value, size, blocks.get(source, 1))
        if module not in tables and not _lacks_bias(source, family, stored):
            value = validated_tensor(stored, f"{source}.bias", full_sizes[source][:1], where)
            yield f"{module}.bias", _first(value, size[:1], blocks.get(source, 1))


def _lacks_bias(module: str, family: Family, stored: Tensors) -> bool:
    """Whether `module` needs no bias, and has none in the `stored` weights."""
    return family.optional_biases and f"{module}.bias" not in stored


def _first(value: NDArray[Any], size: Size, blocks: int = 1) -> NDArray[Any]:
    """Return the first `size`[d] elements along each dimension d.

    blocks: the number of equal blocks of rows, of which each keeps its first ones.
    """
    if value.shape == size:
        return value
    first = tuple(map(slice, (size[0] // blocks, *size[1:])))
    return np.concatenate([block[first] for block in np.split(value, blocks)])


def _logit_head(
    base: Checkpoint, stored: Tensors, shape: EncoderConfig, rng: np.random.Generator
) -> Named:
    """Yield the weights that compute a logit from [CLS]: the `stored` ones, or new ones.

    New weights are random, new biases 0, and new norms 1.
    """
    family = base.family
    logits = (family.logits, (1, base.config.hidden), (1, shape.hidden))
    modules = (*_transforms(base, shape), logits)
    kept = dict(_stored_head(base, stored, modules))
    for module, _, size in modules:
        for name, part in ((f"{module}.weight", size), (f"{module}.bias", size[:1])):
            if name in kept:
                yield name, kept[name]
            elif name.endswith("weight"):
                yield name, rng.normal(0, INIT_STD, part) if len(part) > 1 else np.ones(part)
            elif module == family.logits or not family.optional_biases:
                yield name, np.zeros(part)


def _transforms(base: Checkpoint, shape: EncoderConfig) -> tuple[HeadModule, ...]:
    """Return the modules that transform [CLS] before the logit."""
    family, full, size = base.family, base.config.hidden, shape.hidden
    norm = ((family.transform_norm, (full,), (size,)),) if family.transform_norm else ()
    return ((family.transform[0], (full, full), (size, size)), *norm)


def _stored_head(base: Checkpoint, stored: Tensors, modules: Iterable[HeadModule]) -> Named:
    """Yield those weights of modules of a head that are `stored`."""
    for module, full_size, size in modules:
        for name, whole, part in (
            (f"{module}.weight", full_size, size),
            (f"{module}.bias", full_size[:1], size[:1]),
        ):
            if name in stored and stored[name].shape == whole:
                yield name, _first(validated_tensor(stored, name, whole, str(base.weights)), part)


def _masked_head(
    base: Checkpoint, stored: Tensors, shape: EncoderConfig, rng: np.random.Generator
) -> Named:
    """Yield the weights that predict masked tokens: the `stored` ones, or random ones."""
    head, width, full = base.family.masked, shape.embedding, base.config
    for name, size, full_size in (
        (f"{head.linear}.weight", (width, shape.hidden), (full.embedding, full.hidden)),
        (f"{head.linear}.bias", (width,), (full.embedding,)),
        (f"{head.norm}.weight", (width,), (full.embedding,)),
        (f"{head.norm}.bias", (width,), (full.embedding,)),
        (head.bias, (shape.vocabulary,), (shape.vocabulary,)),
    ):
        module = name.removesuffix(".bias")
        if module in (head.linear, head.norm) and _lacks_bias(module, base.family, stored):
            continue
        if name in stored:
            yield name, _first(validated_tensor(stored, name, full_size, str(base.weights)), size)
        elif len(size) > 1:
            yield name, rng.normal(0, INIT_STD, size)
        else:
            yield name, np.ones(size) if name == f"{head.norm}.weight" else np.zeros(size)


def _parade_values(
    base: Checkpoint,
    stored: Tensors,
    shape: EncoderConfig,
    aggregation: str | None,
    rng: np.random.Generator,
) -> Named:
    """Yield the weights that aggregate passages: those of a PARADE base, if `stored`, or new ones.

    New weights are zero for `attn`, so that passages start with equal weights. For `transformer`,
    the token in front of the passages starts with BERT's word embedding of [CLS], as its authors
    have it, and the other weights are random.
    """
    sizes: dict[str, Size] = {}
    if aggregation == "attn":
        sizes = {PARADE_WEIGHTS[aggregation]: (1, shape.hidden)}
    elif aggregation == "transformer":
        sizes = {
            PARADE_WEIGHTS[aggregation]: (shape.hidden,),
            PARADE_POSITIONS: (PARADE_POSITION_COUNT, shape.hidden),
        }
        for layer in range(PARADE_LAYERS):
            for part, pattern in asdict(PARADE_NAMES).items():
                if "{i}" in pattern:
                    size = module_size(part, shape.as_bert(PARADE_LAYERS))
                    module = pattern.format(i=layer)
                    sizes |= {f"{module}.weight": size, f"{module}.bias": size[:1]}
    stored = stored if isinstance(base.head, Parade) else {}
    for name, size in sizes.items():
        if name in stored:
            value = validated_tensor(stored, name, stored[name].shape, str(base.weights))
            yield name, value[tuple(map(slice, size))].copy()
        elif name.endswith("LayerNorm.weight"):
            yield name, np.ones(size)
        elif name.endswith(".bias") or aggregation == "attn":
            yield name, np.zeros(size)
        elif name == PARADE_WEIGHTS["transformer"] and base.config.embedding == base.config.hidden:
            yield name, _embedding_of_cls(base)[: shape.hidden]
        else:
            yield name, rng.normal(0, INIT_STD, size)


def _embedding_of_cls(base: Checkpoint) -> NDArray[Any]:
    """Return the word embedding of [CLS], (hidden,)."""
    name = f"{base.family.names.words}.weight"
    words = validated_tensor(
        base.tensors(), name, (base.config.vocabulary, base.config.hidden), str(base.weights)
    )
    cls = CheckpointTokenizer(base).single_input(np.empty(0, np.int32))[0]
    return np.array(words[cls])


def _with_one_logit(base: Checkpoint) -> Tensors:
    """Return the stored weights, with an output of two logits reduced to their difference."""
    stored, head = dict(base.tensors()), base.head
    if isinstance(head, Classifier) and head.logit_count == 2:
        for kind in ("weight", "bias"):
            stored[f"{base.family.logits}.{kind}"] = head.one_logit(
                stored[f"{head.output.name}.{kind}"]
            )
    return stored


def _is_trained(name: str, family: Family, trainable: str) -> bool:
    """Return whether the weights called `name` are trained."""
    if trainable == "output":
        return name.startswith(f"{family.logits}.")
    if trainable == "head":
        masked = family.masked
        heads = (masked.linear, masked.norm, masked.bias)
        modules = (family.transform[0], family.transform_norm or family.logits, family.logits)
        return name.startswith((*modules, "parade.", *heads))
    return trainable == "all" or not name.startswith(family.names.words)
