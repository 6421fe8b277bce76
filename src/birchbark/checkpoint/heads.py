"""Which head does a model have: a classifier, a pooling of token vectors, or PARADE?

Relevance is always one number, the log-odds. For a model with two logits it is their difference,
relevant minus not relevant; its sigmoid equals the softmax probability of relevance. Label 1 means
relevant for a classifier. For BERT's next-sentence head label 0 is assumed, which means "is next";
some rankers were trained with label 1 instead, such as those of Birch. A model says which by
`"birchbark": {"relevant_label": 1}` in its config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from birchbark.checkpoint.architecture import PASSAGE_VECTOR_KINDS, POOLER
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.families import Family, Names
from birchbark.checkpoint.layers import Dense, Layer, LayerNorm, UnitLength
from birchbark.checkpoint.settings import check_cross_encoder, check_embedding
from birchbark.errors import CheckpointError, InputError

POOLING_MODES = ("cls", "mean", "max")
PER_TOKEN = "tokens"  # no pooling, but a vector per token, for late interaction
HEAD_KEY = "birchbark"  # key in config.json of what transformers has no key for
RELEVANT_LABEL = "relevant_label"  # under that key
EMBEDDING_WEIGHT = "embedding_weight"  # under that key; says nothing about the head
READS_PASSAGES, READS_TWO_TEXTS = "passages", "two texts"  # values of `reads` under that key
PARADE_AGGREGATIONS = ("avg", "max", "attn", "transformer")
PARADE_NAMES = Names(
    **{
        part: pattern.replace("encoder", "parade")
        for part, pattern in asdict(Names()).items()
        if "{i}" in pattern
    }
)
PARADE_LAYERS = 2
PARADE_WEIGHTS = {"attn": "parade.share.weight", "transformer": "parade.cls"}
PARADE_POSITIONS = "parade.positions"  # embeddings of passage positions; models may lack them
PARADE_POSITION_COUNT = 32  # passages from this one on share the last embedding
POOLING_KEYS = {  # key of sentence-transformers' pooling module → mode
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean",  # equal after scaling to length 1
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True, slots=True)
class Classifier:
    """A classifier: layers that are applied to an input's vector, and an output layer.

    Attributes:
        layers: The layers before the output layer.
        output: The output layer; one with two outputs has no activation.
        relevant_index: Index of the logit for relevance.
        is_duo: Whether the model reads two texts and predicts whether the first is the more
            relevant one (duoBERT). Default: False.
        is_assumed: Whether the model does not say which logit is that for relevance, so that it was
            assumed. Default: False.
        reads: What the layers are applied to: one of POOLING_MODES. Default: "cls", for [CLS].
    """

    layers: tuple[Layer, ...]
    output: Dense
    relevant_index: int
    is_duo: bool = False
    is_assumed: bool = False
    reads: str = "cls"

    @property
    def logit_count(self) -> int:
        """The number of outputs, 1 or 2."""
        return self.output.outputs

    def one_logit(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Reduce the output layer's weights or bias (logits, …) to a single logit's: (1, …)."""
        if self.logit_count == 1:
            return rows
        difference: NDArray[Any] = rows[[self.relevant_index]] - rows[[1 - self.relevant_index]]
        return difference


@dataclass(frozen=True, slots=True)
class Pooling:
    """How the token vectors of one layer become a text vector of length 1.

    Special tokens are included. Mode `tokens` does not pool, but gives a unit vector per token.

    Attributes:
        mode: "cls", "mean", "max" or "tokens". Default: "mean".
        layer: 0 for the embeddings, n for the n-th layer. Default: None, the last layer.
        layers: What is applied to the text's vector before it is scaled to length 1, in order.
            Default: nothing.
    """

    mode: str = "mean"
    layer: int | None = None
    layers: tuple[Layer, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in (*POOLING_MODES, PER_TOKEN):
            raise unsupported_pooling(self.mode)


def unsupported_pooling(found: object) -> CheckpointError:
    """Return the error for a pooling that is none of those that are computed."""
    wanted = " or ".join((*POOLING_MODES, PER_TOKEN))
    return CheckpointError("unsupported pooling", wanted=wanted, found=str(found))


def unsupported_aggregation(found: object) -> CheckpointError:
    """Return the error for an aggregation of passages that is none of PARADE_AGGREGATIONS."""
    wanted = " or ".join(PARADE_AGGREGATIONS)
    return CheckpointError("unsupported aggregation", wanted=wanted, found=str(found))


@dataclass(frozen=True, slots=True)
class Parade:
    """A PARADE head: passage vectors are aggregated, and the result becomes one logit.

    Li et al. 2020.

    Attributes:
        layers: What turns [CLS] into the passage's vector; nothing if it is the vector itself.
        output: Name of the output layer, applied to the aggregated vector.
        aggregation: One of PARADE_AGGREGATIONS; `transformer` has PARADE_LAYERS layers that attend
            to all passages, with or without embeddings of their positions.
    """

    layers: tuple[Layer, ...]
    output: str
    aggregation: str

    def __post_init__(self) -> None:
        if self.aggregation not in PARADE_AGGREGATIONS:
            raise unsupported_aggregation(self.aggregation)


Head = Classifier | Pooling | Parade


def layers_of(head: Head) -> tuple[Layer, ...]:
    """Return all layers that a head applies to vectors; those of modules have a folder."""
    return (*head.layers, head.output) if isinstance(head, Classifier) else head.layers


class UnknownHeadError(CheckpointError):
    """The model has no head, or an unsupported one; a pooling can still be used instead."""


def is_per_token(head: Head) -> bool:
    """Whether a model with this head returns a vector per token."""
    return isinstance(head, Pooling) and head.mode == PER_TOKEN


@dataclass(frozen=True, slots=True)
class Modules:
    """What sentence-transformers' modules after the encoder compute.

    Attributes:
        pooling: Configuration of the pooling module; empty if there is none.
        layers: The layers after it.
        gives_scores: Whether the last layer gives scores instead of a vector.
    """

    pooling: Mapping[str, Any]
    layers: tuple[Layer, ...] = ()
    gives_scores: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a model, from which `find_head` determines its head.

    Attributes:
        family: The model's family.
        config: Sizes of its encoder.
        shapes: Tensor name → shape.
        directory: The model directory, for error messages.
    """

    family: Family
    config: EncoderConfig
    shapes: Mapping[str, list[int]]
    directory: Path

    def outputs(self, layer: str) -> int:
        """Return the number of outputs of a linear layer; 0 if the model does not have it."""
        shape = self.shapes.get(f"{layer}.weight", [])
        return shape[0] if shape else 0

    def dense(self, name: str, outputs: int, activation: str = "") -> Dense:
        """Return the linear layer `name` of the classifier."""
        bias = f"{name}.bias" in self.shapes or not self.family.optional_biases
        return Dense(name, self.config.hidden, outputs, bias, activation)

    def transform(self) -> tuple[Layer, ...]:
        """Return the layers of the family's classifier before its output layer."""
        family, hidden = self.family, self.config.hidden
        name, activation = family.transform
        dense, norm = self.dense(name, hidden, activation), family.transform_norm
        return (dense, LayerNorm(norm, hidden, self.config.epsilon)) if norm else (dense,)

    def classifier(self, name: str, relevant_index: int, **settings: bool) -> Classifier:
        """Return the family's classifier with the output layer `name`."""
        output = self.dense(name, self.outputs(name))
        reads = self.family.reads
        return Classifier(self.transform(), output, relevant_index, reads=reads, **settings)


def find_head(stored: Stored, modules: Modules, declared_head: object) -> Head:
    """Determine a model's head.

    The first of these determines it: the head declared in config.json, modules that give scores, a
    classifier, a pooling, a next-sentence head.

    declared_head: value of HEAD_KEY in config.json, None if there is none. Raises UnknownHeadError
    if the model has none of these heads, and CheckpointError if the declared head or the pooling is
    unsupported.
    """
    family, directory = stored.family, stored.directory
    if isinstance(declared_head, dict):
        declared_head = {k: x for k, x in declared_head.items() if k != EMBEDDING_WEIGHT} or None
    label = declared_head.get(RELEVANT_LABEL) if isinstance(declared_head, dict) else None
    if declared_head is not None and label is None:
        return _declared_head(stored, declared_head)
    if label is not None and (type(label) is not int or label not in (0, 1)):
        raise CheckpointError(
            f"wrong {RELEVANT_LABEL}",
            where=str(directory / "config.json"),
            wanted="0 or 1",
            found=str(label)[:80],
        )
    if modules.gives_scores:
        check_cross_encoder(directory)
        return _classifier_of_modules(modules, label, directory)
    logit_count = stored.outputs(family.logits)
    if logit_count in (1, 2):
        relevant = label if label is not None and logit_count == 2 else logit_count - 1
        return stored.classifier(family.logits, relevant)
    if modules.pooling:
        layers = modules.layers
        check_embedding(directory, layers)
        if layers and isinstance(layers[-1], UnitLength):  # any text vector is scaled at the end
            layers = layers[:-1]
        return Pooling(_mode(modules.pooling, directory), layers=layers)
    if not logit_count and stored.outputs(family.next_sentence) == 2:
        return stored.classifier(family.next_sentence, label or 0, is_assumed=label is None)
    raise UnknownHeadError(
        "no supported head",
        where=str(directory),
        wanted="a classifier with one or two logits, a next-sentence head, or a pooling "
        "(in 1_Pooling/config.json or as an option)",
        found=f"a classifier with {logit_count} logits" if logit_count else "none",
    )


def _classifier_of_modules(modules: Modules, label: int | None, directory: Path) -> Classifier:
    """Return the classifier whose last module is a Dense that gives scores."""
    *layers, output = modules.layers
    if (
        not isinstance(output, Dense)
        or output.residual
        or output.outputs not in (1, 2)
        or (output.activation and output.outputs == 2)
    ):
        raise CheckpointError(
            "unsupported scores",
            where=str(directory / output.folder),
            wanted="one or two outputs, two without an activation, and no residual",
            found=f"{output.outputs} outputs",
        )
    relevant = label if label is not None and output.outputs == 2 else output.outputs - 1
    return Classifier(tuple(layers), output, relevant, reads=_mode(modules.pooling, directory))


def _declared_head(stored: Stored, declared_head: object) -> Head:
    """Return the declared head: that of a duoBERT or PARADE model."""
    family, directory = stored.family, stored.directory
    if declared_head == {"reads": READS_TWO_TEXTS} and stored.outputs(family.logits) == 1:
        return stored.classifier(family.logits, 0, is_duo=True)
    values = declared_head if isinstance(declared_head, dict) else {}
    aggregation, vectors = values.get("aggregation"), values.get("vectors", POOLER)
    reads_passages = values.get("reads") == READS_PASSAGES and vectors in PASSAGE_VECTOR_KINDS
    if not reads_passages or aggregation not in PARADE_AGGREGATIONS:
        raise CheckpointError(
            "unsupported kind of model",
            where=str(directory / "config.json"),
            wanted=f"one that reads {READS_TWO_TEXTS}, or {READS_PASSAGES} aggregated by "
            + ", ".join(PARADE_AGGREGATIONS)
            + f", with vectors by {' or '.join(PASSAGE_VECTOR_KINDS)}",
            found=str(declared_head)[:80],
            remedy="a newer version of Birchbark may support it",
        )
    if f"{PARADE_NAMES.query.format(i=PARADE_LAYERS)}.weight" in stored.shapes:
        raise CheckpointError(
            "too many layers attend to passages",
            where=str(directory),
            wanted=str(PARADE_LAYERS),
        )
    layers = stored.transform()[:1] if vectors == POOLER else ()
    return Parade(layers, family.logits, aggregation)


def _mode(pooling_config: Mapping[str, Any], directory: Path) -> str:
    """Return the pooling mode in a pooling module's configuration, which has one of two formats."""
    mode = pooling_config.get("pooling_mode")
    if isinstance(mode, str):
        modes = [mode]
    else:
        modes = [mode for key, mode in POOLING_KEYS.items() if pooling_config.get(key)]
    if len(modes) == 1 and modes[0] in POOLING_MODES:
        return str(modes[0])
    raise CheckpointError(
        "unsupported pooling",
        where=str(directory),
        wanted=" or ".join(POOLING_MODES),
        found=" and ".join(modes) or "none",
    )


def parse_pooling(text: str) -> Pooling:
    """Parse a pooling: cls, mean, max or tokens, optionally followed by :LAYER (mean:6)."""
    mode, colon, layer = text.partition(":")
    if mode not in (*POOLING_MODES, PER_TOKEN) or bool(colon) != (
        layer.isascii() and layer.isdecimal()
    ):
        raise InputError(
            "unknown pooling",
            found=repr(text),
            wanted="cls, mean, max or tokens, optionally with a layer: mean:6",
        )
    return Pooling(mode, int(layer) if layer else None)
