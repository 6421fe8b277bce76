"""Which losses can a model be trained with?

A loss function takes lists of texts that share a query. Its arguments are logits and targets
(lists, width), float32, and a mask of the same shape that is true where there is a text. It returns
one loss per list, (lists,). A list has at least one text. Padding outside the mask has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.errors import InputError

Loss = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Objective:
    """One of `LOSSES`, with its settings.

    kind: the name of the loss. Targets are grades, except for `soft`, `soft-margin` and
    `soft-labels`, whose targets are a teacher's log-odds. `duo` is the pointwise loss over
    comparisons of two texts.
    margin: for `margin`, the difference of log-odds beyond which the loss is 0.
    temperature: for `soft-labels`, T in its formula.
    """

    kind: str = defaults.OBJECTIVE
    margin: float = defaults.MARGIN
    temperature: float = defaults.TEMPERATURE

    def __post_init__(self) -> None:
        if self.kind not in LOSSES:
            raise InputError(
                f"unknown objective {self.kind!r}", wanted=f"one of {', '.join(LOSSES)}"
            )
        for name in SETTINGS:
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise InputError(
                    f"{name} is out of range", wanted="a finite number above 0", found=str(value)
                )

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings that this loss has."""
        return LOSSES[self.kind].settings

    @property
    def needs_teacher(self) -> bool:
        """Whether the targets are a teacher's log-odds, and not grades."""
        return LOSSES[self.kind].needs_teacher

    @property
    def can_use_teacher(self) -> bool:
        """Whether a teacher may say which texts of grade 0 are probably relevant."""
        return LOSSES[self.kind].can_use_teacher

    @property
    def needs_several_texts(self) -> bool:
        """Whether the loss needs at least two texts per list; with one it is constant."""
        return LOSSES[self.kind].needs_several_texts

    def has_gradient(self, grades: NDArray[np.float32]) -> bool:
        """Return whether the loss of a list with these grades (texts,) depends on the logits.

        The list must have at least two texts if the loss needs several.
        """
        return LOSSES[self.kind].has_gradient(grades)

    @property
    def loss(self) -> Loss:
        """The loss function, with its settings bound."""
        settings = {name: getattr(self, name) for name in self.settings}
        return partial(LOSSES[self.kind].function, **settings)


def pointwise(logits: Any, targets: Any, mask: Any) -> Any:
    """Mean binary cross-entropy between sigmoid(logit) and the label grade > 0.

    It equals softmax cross-entropy over two logits whose difference is this logit (Nogueira & Cho
    2019).
    """
    from torch.nn.functional import binary_cross_entropy_with_logits

    labels = (targets > 0).to(logits.dtype)  # (lists, width)
    return _mean(binary_cross_entropy_with_logits(logits, labels, reduction="none"), mask)


def ranknet(logits: Any, targets: Any, mask: Any) -> Any:
    """Mean of log(1 + exp(l − h)) over a list's pairs of texts with unequal grades.

    h and l are the logits of the higher- and the lower-graded text (RankNet, Burges et al. 2005).
    """
    from torch.nn.functional import softplus

    return _mean_over_unequal(lambda gap: softplus(-gap), logits, targets, mask)


def margin_loss(logits: Any, targets: Any, mask: Any, margin: float) -> Any:
    """Mean of max(0, margin − (h − l)) over a list's pairs of texts with unequal grades.

    h and l are the logits of the higher- and the lower-graded text.
    """
    return _mean_over_unequal(lambda gap: (margin - gap).clamp(min=0), logits, targets, mask)


def softmax_loss(logits: Any, targets: Any, mask: Any) -> Any:
    """Cross-entropy between softmax(logits) and the grades divided by their sum.

    Grades below 0 count as 0. For a list with one relevant text, the loss is the negative logarithm
    of that text's probability; for a list without one it is 0. Texts whose grade is NaN are left
    out.
    """
    mask = mask & ~targets.isnan()  # (lists, width)
    gains = targets.nan_to_num().clamp(min=0) * mask  # (lists, width)
    target_probabilities = gains / gains.sum(1, keepdim=True).clamp(min=1e-9)
    return _cross_entropy(logits, target_probabilities, mask)


def listnet(logits: Any, targets: Any, mask: Any) -> Any:
    """Cross-entropy between softmax(logits) and softmax(grades).

    This is ListNet with top-one probabilities (Cao et al. 2007).
    """
    target_probabilities = targets.masked_fill(~mask, float("-inf")).softmax(1)  # (lists, width)
    return _cross_entropy(logits, target_probabilities, mask)


def soft(logits: Any, targets: Any, mask: Any) -> Any:
    """Mean squared difference between the logits and the teacher's log-odds."""
    return _mean((logits - targets) ** 2, mask)


def soft_margin(logits: Any, targets: Any, mask: Any) -> Any:
    """Mean squared difference between the student's and the teacher's margins.

    A margin is the difference between the log-odds of two texts of a list. Adding a constant to all
    logits of a list does not change the loss (Margin-MSE, Hofstätter et al. 2020).
    """
    error = logits - targets  # (lists, width)
    difference = error[:, :, None] - error[:, None, :]  # (lists, width, width)
    distinct = _pair_mask(mask) & ~_identity(mask)
    return _mean((difference**2).flatten(1), distinct.flatten(1))


def soft_labels(logits: Any, targets: Any, mask: Any, temperature: float) -> Any:
    """Mean of T² · KL(sigmoid(teacher's log-odds / T) ‖ sigmoid(logit / T)).

    It is computed as cross-entropy minus the teacher's entropy, so it is 0 for a student equal to
    its teacher. A higher T softens both distributions; the factor T² keeps gradients comparable
    across temperatures (Hinton et al. 2015; Sanh et al. 2019).
    """
    from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

    scaled = targets / temperature  # (lists, width)
    target_probabilities = scaled.sigmoid()  # (lists, width)
    cross_entropy = binary_cross_entropy_with_logits(
        logits / temperature, target_probabilities, reduction="none"
    )
    entropy = -(
        target_probabilities * logsigmoid(scaled) + (1 - target_probabilities) * logsigmoid(-scaled)
    )
    return temperature**2 * _mean(cross_entropy - entropy, mask)


def _always(grades: NDArray[np.float32]) -> bool:
    return True


def _unequal(grades: NDArray[np.float32]) -> bool:
    return bool(grades.max() > grades.min())


def _any_relevant(grades: NDArray[np.float32]) -> bool:
    return bool(grades.max() > 0)


@dataclass(frozen=True, slots=True)
class _LossKind:
    """A loss function and its properties; see the properties of Objective."""

    function: Callable[..., Any]
    needs_several_texts: bool = True
    has_gradient: Callable[[NDArray[np.float32]], bool] = _always
    needs_teacher: bool = False
    can_use_teacher: bool = False
    settings: tuple[str, ...] = ()


SETTINGS = ("margin", "temperature")
LOSSES: Mapping[str, _LossKind] = {
    "pointwise": _LossKind(pointwise, needs_several_texts=False),
    "ranknet": _LossKind(ranknet, has_gradient=_unequal),
    "margin": _LossKind(margin_loss, has_gradient=_unequal, settings=("margin",)),
    "softmax": _LossKind(softmax_loss, has_gradient=_any_relevant, can_use_teacher=True),
    "listnet": _LossKind(listnet),
    "soft": _LossKind(soft, needs_several_texts=False, needs_teacher=True),
    "soft-margin": _LossKind(soft_margin, needs_teacher=True),
    "duo": _LossKind(pointwise, has_gradient=_unequal),
    "soft-labels": _LossKind(
        soft_labels, needs_several_texts=False, needs_teacher=True, settings=("temperature",)
    ),
}


def _mean(values: Any, mask: Any) -> Any:
    """Average each row over its mask, (lists, n) → (lists,); 0 for a row whose mask is empty."""
    return values.masked_fill(~mask, 0).sum(1) / mask.sum(1).clamp(min=1)


def _cross_entropy(logits: Any, target_probabilities: Any, mask: Any) -> Any:
    log_probabilities = logits.masked_fill(~mask, float("-inf")).log_softmax(1)  # (lists, width)
    return -(target_probabilities * log_probabilities.masked_fill(~mask, 0)).sum(1)


def _mean_over_unequal(loss: Callable[[Any], Any], logits: Any, targets: Any, mask: Any) -> Any:
    """Average `loss`(h − l) over pairs of texts with unequal targets; 0 if there are none.

    h and l are the logits of the texts with the higher and the lower target.
    """
    gap = logits[:, :, None] - logits[:, None, :]  # (lists, width, width)
    ordered = (targets[:, :, None] > targets[:, None, :]) & _pair_mask(mask)
    return _mean(loss(gap).flatten(1), ordered.flatten(1))


def _pair_mask(mask: Any) -> Any:
    """Return where both texts of a pair exist: (lists, width) → (lists, width, width)."""
    return mask[:, :, None] & mask[:, None, :]


def _identity(mask: Any) -> Any:
    """Return where both texts of a pair are the same text: (width, width)."""
    import torch

    return torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
