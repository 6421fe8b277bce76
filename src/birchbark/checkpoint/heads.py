"""Which heads can a model have: a classifier, a pooling of token vectors, or PARADE?

Relevance is always one number, the log-odds. For a model with two logits it is their difference,
relevant minus not relevant; its sigmoid equals the softmax probability of relevance. find_head.py
says which head a model has.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import NDArray

from birchbark.arguments import is_count
from birchbark.checkpoint.families import Names
from birchbark.checkpoint.layers import Dense, Layer, UnitLength
from birchbark.checkpoint.score_scale import SCALE_KEYS
from birchbark.errors import CheckpointError, InputError

POOLING_MODES = ("cls", "mean", "max")
PER_TOKEN = "tokens"  # no pooling, but a vector per token, for late interaction
HEAD_KEY = "birchbark"  # key in config.json of what transformers has no key for
RELEVANT_LABEL = "relevant_label"  # under that key
EMBEDDING_WEIGHT = "embedding_weight"  # under that key
MIXING_KEYS = (EMBEDDING_WEIGHT, *SCALE_KEYS)  # say nothing about the head
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


def is_modular(head: Head) -> bool:
    """Whether a head has modules whose kind and order their files do not tell.

    These are the modules of a cross-encoder, and of an embedding those other than Dense and a last
    Normalize.
    """
    if isinstance(head, Classifier):
        return any(layer.folder for layer in layers_of(head))
    return not all(
        isinstance(layer, Dense) or (isinstance(layer, UnitLength) and number == len(head.layers))
        for number, layer in enumerate(head.layers, 1)
    )


class UnknownHeadError(CheckpointError):
    """The model has no head, or an unsupported one; a pooling can still be used instead."""


def is_per_token(head: Head) -> bool:
    """Whether a model with this head returns a vector per token."""
    return isinstance(head, Pooling) and head.mode == PER_TOKEN


def parse_pooling(text: str) -> Pooling:
    """Parse a pooling: cls, mean, max or tokens, optionally followed by :LAYER (mean:6)."""
    mode, colon, layer = text.partition(":")
    if mode not in (*POOLING_MODES, PER_TOKEN) or bool(colon) != is_count(layer):
        raise InputError(
            "unknown pooling",
            found=repr(text),
            wanted="cls, mean, max or tokens, optionally with a layer: mean:6",
        )
    return Pooling(mode, int(layer) if layer else None)
