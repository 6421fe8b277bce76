"""Which head stands on the encoder: logits of relevance, or a pooled embedding?

Relevance is always one number, log-odds. Of two logits it is the difference, relevant minus not,
so that its sigmoid is their softmax: logit 1 − logit 0 for a classifier, whose label 1 means
relevant; but logit 0 − logit 1 for BERT's next-sentence head, whose label 0 means "is next".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from birchbark.errors import CheckpointError
from birchbark.score.families import Family

MODES = ("cls", "mean", "max")
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

    relevant: which of two logits speaks for relevance.
    """

    transform: tuple[str, str]
    output: str
    logits: int
    relevant: int

    def one_logit(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The output layer's weights or bias as those of one logit, (1, …): relevant minus not."""
        if self.logits == 1:
            return rows
        difference: NDArray[Any] = rows[[self.relevant]] - rows[[1 - self.relevant]]
        return difference


@dataclass(frozen=True, slots=True)
class Pooling:
    """Token vectors of one layer, special tokens included, become one unit vector.

    mode: cls, mean or max. layer: 0 for the embeddings, n for the n-th layer, None for the last.
    """

    mode: str = "mean"
    layer: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise CheckpointError("unknown pooling", wanted=" or ".join(MODES), found=self.mode)


Head = Classifier | Pooling


def find_head(
    family: Family, shapes: Mapping[str, list[int]], pooling: Mapping[str, Any], directory: Path
) -> Head:
    """A classifier's logits, else the stated pooling, else the next-sentence head.

    shapes: of the stored tensors. pooling: the configuration of sentence-transformers' pooling
    module, empty without one. Raises CheckpointError if there is none of these.
    """
    logits = _rows(shapes, family.logits)
    if logits in (1, 2):
        return Classifier(family.transform, family.logits, logits, logits - 1)
    if pooling:
        return Pooling(_mode(pooling, directory))
    if not logits and _rows(shapes, family.next_sentence) == 2:
        return Classifier(family.transform, family.next_sentence, 2, 0)
    raise CheckpointError(
        "unknown head",
        where=str(directory),
        wanted="a classifier of one or two logits, a next-sentence head, or a pooling "
        "(1_Pooling/config.json, or chosen by the caller)",
        found=f"a classifier of {logits} logits" if logits else "none",
    )


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
