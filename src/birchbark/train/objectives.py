"""What is minimised? Losses over lists of texts that share a query.

Each takes logits and targets (lists, width) in float32 and a mask of the same shape, true where
there is a text, and gives one loss a list, (lists,). A list has one text or more. Padding changes
nothing: what stands outside of the mask is never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

Loss = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Objective:
    """One of `LOSSES` by its name, with its settings.

    margin: of `margin` alone, the difference of log-odds that is enough. temperature: of
    `soft-labels` alone. `duo` is pointwise over comparisons of two texts. Targets are grades, or
    log-odds of a teacher where it is `soft`.
    """

    kind: str = "pointwise"
    margin: float = 1.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in LOSSES:
            raise InputError(
                f"unknown objective {self.kind!r}", remedy=f"one of {', '.join(LOSSES)}"
            )
        for name in SETTINGS:
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise InputError(f"{name} is out of range", wanted="above 0", found=str(value))

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of those that this loss has."""
        return LOSSES[self.kind].settings

    @property
    def soft(self) -> bool:
        """Whether targets are a teacher's log-odds."""
        return LOSSES[self.kind].soft

    @property
    def compares(self) -> bool:
        """Whether a list of one text has nothing to learn from."""
        return LOSSES[self.kind].compares

    def learns_from(self, grades: NDArray[np.float32]) -> bool:
        """Whether a list with these grades has a loss that can be lowered."""
        return LOSSES[self.kind].learns_from(grades)

    @property
    def loss(self) -> Loss:
        """The function, with its settings."""
        chosen = {name: getattr(self, name) for name in self.settings}
        return partial(LOSSES[self.kind].function, **chosen)


def pointwise(logits: Any, targets: Any, mask: Any) -> Any:
    """Binary cross-entropy of sigmoid(logit) and relevant (grade above 0) or not; mean of a list.

    Equal to softmax cross-entropy over two logits, of which this one is the difference (Nogueira &
    Cho 2019).
    """
    from torch.nn.functional import binary_cross_entropy_with_logits

    labels = (targets > 0).to(logits.dtype)
    return _mean(binary_cross_entropy_with_logits(logits, labels, reduction="none"), mask)


def ranknet(logits: Any, targets: Any, mask: Any) -> Any:
    """Log(1 + exp(lower − higher)), mean over the list's pairs of unequal grades (Burges 2005)."""
    from torch.nn.functional import softplus

    return _over_pairs(lambda gap: softplus(-gap), logits, targets, mask)


def margin_loss(logits: Any, targets: Any, mask: Any, margin: float) -> Any:
    """Max(0, margin − (higher − lower)), mean over the list's pairs of unequal grades."""
    return _over_pairs(lambda gap: (margin - gap).clamp(min=0), logits, targets, mask)


def softmax_loss(logits: Any, targets: Any, mask: Any) -> Any:
    """Cross-entropy of softmax(logits) and the grades divided by their sum.

    With one relevant text in a list, minus the logarithm of its share.
    """
    goal = targets.clamp(min=0) * mask
    goal = goal / goal.sum(1, keepdim=True).clamp(min=1e-9)
    return _cross_entropy(logits, goal, mask)


def listnet(logits: Any, targets: Any, mask: Any) -> Any:
    """Cross-entropy of softmax(logits) and softmax(grades): ListNet's top-one (Cao 2007)."""
    goal = targets.masked_fill(~mask, float("-inf")).softmax(1)
    return _cross_entropy(logits, goal, mask)


def soft(logits: Any, targets: Any, mask: Any) -> Any:
    """Squared difference to the teacher's log-odds, mean over the list."""
    return _mean((logits - targets) ** 2, mask)


def soft_margin(logits: Any, targets: Any, mask: Any) -> Any:
    """Squared difference to the teacher's margins, mean over all pairs of the list.

    Where scores lie does not matter, only their distances (Margin-MSE, Hofstätter 2020).
    """
    gap = logits - targets
    apart = gap[:, :, None] - gap[:, None, :]
    both = _pairs(mask) & ~_diagonal(mask)
    return _mean((apart**2).flatten(1), both.flatten(1))


def soft_labels(logits: Any, targets: Any, mask: Any, temperature: float) -> Any:
    """T² · KL(sigmoid(teacher's log-odds / T), sigmoid(logit / T)), mean over the list.

    Soft cross-entropy less what no student can undo, so a student equal to its teacher has none; T
    → 0 makes labels of the teacher's decisions (Hinton 2015; Sanh 2019).
    """
    from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

    cold, wanted = targets / temperature, (targets / temperature).sigmoid()
    crossed = binary_cross_entropy_with_logits(logits / temperature, wanted, reduction="none")
    entropy = -(wanted * logsigmoid(cold) + (1 - wanted) * logsigmoid(-cold))
    return temperature**2 * _mean(crossed - entropy, mask)


def _any(grades: NDArray[np.float32]) -> bool:
    return True


def _unequal(grades: NDArray[np.float32]) -> bool:
    return bool(grades.max() > grades.min())


def _some_relevant(grades: NDArray[np.float32]) -> bool:
    return bool(grades.max() > 0)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What there is to know of a loss. See the properties of Objective."""

    function: Callable[..., Any]
    compares: bool = True
    learns_from: Callable[[NDArray[np.float32]], bool] = _any
    soft: bool = False
    settings: tuple[str, ...] = ()


SETTINGS = ("margin", "temperature")
LOSSES: Mapping[str, _Kind] = {
    "pointwise": _Kind(pointwise, compares=False),
    "ranknet": _Kind(ranknet, learns_from=_unequal),
    "margin": _Kind(margin_loss, learns_from=_unequal, settings=("margin",)),
    "softmax": _Kind(softmax_loss, learns_from=_some_relevant),
    "listnet": _Kind(listnet),
    "soft": _Kind(soft, compares=False, soft=True),
    "soft-margin": _Kind(soft_margin, soft=True),
    "duo": _Kind(pointwise, learns_from=_unequal),
    "soft-labels": _Kind(soft_labels, compares=False, soft=True, settings=("temperature",)),
}


def _mean(values: Any, mask: Any) -> Any:
    """Mean of each list's values within the mask; 0 where there are none."""
    return values.masked_fill(~mask, 0).sum(1) / mask.sum(1).clamp(min=1)


def _cross_entropy(logits: Any, goal: Any, mask: Any) -> Any:
    shares = logits.masked_fill(~mask, float("-inf")).log_softmax(1)
    return -(goal * shares.masked_fill(~mask, 0)).sum(1)


def _over_pairs(loss: Callable[[Any], Any], logits: Any, targets: Any, mask: Any) -> Any:
    """Mean of `loss`(higher − lower) over pairs of unequal targets; 0 where there are none."""
    gap = logits[:, :, None] - logits[:, None, :]
    wanted = (targets[:, :, None] > targets[:, None, :]) & _pairs(mask)
    return _mean(loss(gap).flatten(1), wanted.flatten(1))


def _pairs(mask: Any) -> Any:
    return mask[:, :, None] & mask[:, None, :]


def _diagonal(mask: Any) -> Any:
    import torch

    return torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
