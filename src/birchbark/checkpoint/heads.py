"""Which head stands on the encoder: logits of relevance, or a pooled embedding?

Relevance is always one number, log-odds. Of two logits it is the difference, relevant minus not,
so that its sigmoid is their softmax: logit 1 − logit 0 for a classifier, whose label 1 means
relevant; but logit 0 − logit 1 for BERT's next-sentence head, whose label 0 means "is next".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from birchbark.checkpoint.families import Family, Names
from birchbark.errors import CheckpointError, InputError

MODES = ("cls", "mean", "max")
TOKENS = "tokens"  # no pooling: every token keeps its vector, for late interaction
STATEMENT = "birchbark"  # key of config.json, of models that read more than a query and a text
PASSAGES, TWO_TEXTS = "passages", "two texts"  # what they read
HOWS = ("avg", "max", "attn", "transformer")
PARADE_NAMES = Names(
    **{
        part: pattern.replace("encoder", "parade")
        for part, pattern in asdict(Names()).items()
        if "{i}" in pattern
    }
)
PARADE_LAYERS = 2
PARADE_WEIGHTS = {"attn": "parade.share.weight", "transformer": "parade.cls"}
STATED = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean",  # of other length; ours are scaled to 1
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True, slots=True)
class Classifier:
    """Linear layer and activation on [CLS] (`transform`), then one logit or two (`output`).

    relevant: which of two logits speaks for relevance. compares: whether it reads two texts, and
    says by how much the first is the more relevant one (duoBERT), not one text.
    """

    transform: tuple[str, str]
    output: str
    logits: int
    relevant: int
    compares: bool = False

    def one_logit(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The output layer's weights or bias as those of one logit, (1, …): relevant minus not."""
        if self.logits == 1:
            return rows
        difference: NDArray[Any] = rows[[self.relevant]] - rows[[1 - self.relevant]]
        return difference


@dataclass(frozen=True, slots=True)
class Pooling:
    """Token vectors of one layer, special tokens included, become one unit vector.

    mode: cls, mean or max; or tokens, where each stays a unit vector of its own. layer: 0 for the
    embeddings, n for the n-th layer, None for the last.
    """

    mode: str = "mean"
    layer: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in (*MODES, TOKENS):
            raise CheckpointError(
                "unknown pooling", wanted=" or ".join((*MODES, TOKENS)), found=self.mode
            )


@dataclass(frozen=True, slots=True)
class Parade:
    """Passages' vectors, `transform` of [CLS] each, become a document's, then one logit (`output`).

    how: one of `HOWS`; `transformer` has PARADE_LAYERS layers that look at all passages. Li et al.
    2020.
    """

    transform: tuple[str, str]
    output: str
    how: str


Head = Classifier | Pooling | Parade


class UnknownHeadError(CheckpointError):
    """A model has no head, or none that we know; as an encoder it can be read all the same."""


def by_token(head: Head) -> bool:
    """Whether a model with this head gives a vector for each token, not one for all."""
    return isinstance(head, Pooling) and head.mode == TOKENS


def find_head(
    family: Family,
    shapes: Mapping[str, list[int]],
    pooling: Mapping[str, Any],
    stated: object,
    directory: Path,
) -> Head:
    """What the model says that it is, else a classifier's logits, pooling, next-sentence head.

    shapes: of the stored tensors. pooling: the configuration of sentence-transformers' pooling
    module, empty without one. stated: what config.json says under `birchbark`, of models that read
    more than a query and a text; None of others. Raises UnknownHeadError if there is none of these.
    """
    if stated is not None:
        return _stated_head(family, shapes, stated, directory)
    logits = _rows(shapes, family.logits)
    if logits in (1, 2):
        return Classifier(family.transform, family.logits, logits, logits - 1)
    if pooling:
        return Pooling(_mode(pooling, directory))
    if not logits and _rows(shapes, family.next_sentence) == 2:
        return Classifier(family.transform, family.next_sentence, 2, 0)
    raise UnknownHeadError(
        "unknown head",
        where=str(directory),
        wanted="a classifier of one or two logits, a next-sentence head, or a pooling "
        "(1_Pooling/config.json, or chosen by the caller)",
        found=f"a classifier of {logits} logits" if logits else "none",
    )


def _stated_head(
    family: Family, shapes: Mapping[str, list[int]], stated: object, directory: Path
) -> Head:
    """The head of a model that reads a query and a document's passages, or two texts."""
    if stated == {"reads": TWO_TEXTS} and _rows(shapes, family.logits) == 1:
        return Classifier(family.transform, family.logits, 1, 0, compares=True)
    said = stated if isinstance(stated, dict) else {}
    if said.get("reads") != PASSAGES or said.get("aggregation") not in HOWS:
        raise CheckpointError(
            "unknown kind of model",
            where=str(directory / "config.json"),
            wanted=f"one that reads {TWO_TEXTS}, or {PASSAGES} aggregated by {', '.join(HOWS)}",
            found=str(stated)[:80],
            remedy="a newer Birchbark may know it",
        )
    if f"{PARADE_NAMES.query.format(i=PARADE_LAYERS)}.weight" in shapes:
        raise CheckpointError(
            "more layers look at passages than there can be",
            where=str(directory),
            wanted=str(PARADE_LAYERS),
        )
    return Parade(family.transform, family.logits, said["aggregation"])


def _rows(shapes: Mapping[str, list[int]], layer: str) -> int:
    """Outputs of a linear layer; 0 if there is none."""
    shape = shapes.get(f"{layer}.weight", [])
    return shape[0] if shape else 0


def _mode(pooling: Mapping[str, Any], directory: Path) -> str:
    """The mode that a pooling module's configuration states, in either of its two layouts."""
    named = pooling.get("pooling_mode")
    modes = [named] if isinstance(named, str) else [STATED[k] for k in STATED if pooling.get(k)]
    if len(modes) == 1 and modes[0] in MODES:
        return str(modes[0])
    raise CheckpointError(
        "unknown pooling",
        where=str(directory),
        wanted=" or ".join(MODES),
        found=" and ".join(modes) or "none",
    )


def parse_pooling(text: str) -> Pooling:
    """The pooling that `text` names: cls, mean, max or tokens, with :LAYER or without."""
    mode, colon, layer = text.partition(":")
    if mode not in (*MODES, TOKENS) or bool(colon) != (layer.isascii() and layer.isdecimal()):
        raise InputError(
            "not a pooling",
            found=repr(text),
            wanted="cls, mean, max or tokens, or with a layer: mean:6",
        )
    return Pooling(mode, int(layer) if layer else None)
