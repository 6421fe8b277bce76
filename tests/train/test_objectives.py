"""Is each loss what its paper says, whatever stands in the padding, with gradients everywhere?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.train.objectives import LOSSES, Objective

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

KINDS = tuple(LOSSES)
LISTS = [
    ([0.5, -1.25, 2.0], [1.0, 0.0, 2.0]),
    ([0.0], [1.0]),
    ([3.0, -2.0], [0.0, 0.0]),
    ([1.0, 1.0, -4.0, 0.25], [0.0, 3.0, 1.0, 1.0]),
]
NUMBERS = st.floats(-30, 30, width=32)


def by_hand(kind: str, logits: Sequence[float], targets: Sequence[float], setting: float) -> float:
    """The loss of one list, one text or pair of texts at a time."""
    x, y, n = list(map(float, logits)), list(map(float, targets)), range(len(logits))
    unequal = [x[i] - x[j] for i in n for j in n if y[i] > y[j]]
    shares = np.exp(x) / np.exp(x).sum()
    if kind in ("pointwise", "duo"):
        chances = [1 / (1 + math.exp(-s)) for s in x]
        found = [-math.log(p if t > 0 else 1 - p) for p, t in zip(chances, y, strict=True)]
    elif kind == "ranknet":
        found = [math.log(1 + math.exp(-gap)) for gap in unequal]
    elif kind == "margin":
        found = [max(0, setting - gap) for gap in unequal]
    elif kind == "softmax":
        return -sum(t / sum(y) * math.log(s) for t, s in zip(y, shares, strict=True) if t > 0)
    elif kind == "listnet":
        goal = np.exp(y) / np.exp(y).sum()
        return float(-(goal * np.log(shares)).sum())
    elif kind == "soft":
        found = [(s - t) ** 2 for s, t in zip(x, y, strict=True)]
    elif kind == "soft-labels":
        both = [[1 / (1 + math.exp(-v / setting)) for v in pair] for pair in zip(x, y, strict=True)]
        found = [
            setting**2 * (t * math.log(t / p) + (1 - t) * math.log((1 - t) / (1 - p)))
            for p, t in both
        ]
    else:
        found = [(x[i] - x[j] - (y[i] - y[j])) ** 2 for i in n for j in n if i != j]
    return sum(found) / len(found) if found else 0.0


def padded(lists: Sequence[Sequence[float]], width: int, filling: float) -> Any:
    return torch.tensor([[*one, *[filling] * (width - len(one))] for one in lists])


def losses(
    objective: Objective, lists: Any, width: int, filling: tuple[float, float] = (0.0, 0.0)
) -> tuple[Any, Any]:
    """Losses and gradients of lists, filled up to `width`."""
    logits = padded([x for x, _ in lists], width, filling[0]).requires_grad_()
    mask = torch.tensor([[i < len(x) for i in range(width)] for x, _ in lists])
    found = objective.loss(logits, padded([y for _, y in lists], width, filling[1]), mask)
    found.sum().backward()
    return found.detach(), logits.grad


@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_is_what_it_is_by_hand(kind: str) -> None:
    """On lists of several lengths together."""
    for setting in (1.0, 2.5):
        found, _ = losses(Objective(kind, setting, setting), LISTS, 6)
        expected = [by_hand(kind, *one, setting) for one in LISTS]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.sampled_from([0.25, 1.0, 4.0]))
def test_a_student_equal_to_its_teacher_has_no_loss(said: list[float], temperature: float) -> None:
    """Nor anything to learn."""
    same = Objective("soft-labels", temperature=temperature)
    found, slope = losses(same, [(said, said)], len(said))
    assert found.abs().max() < 1e-5
    assert slope.abs().max() < 1e-6


def test_a_cold_teacher_gives_labels() -> None:
    """T → 0: cross-entropy with the teacher's decisions, at the student's own temperature."""
    cold = 1e-3
    teacher, student = [2.0, -1.5, 0.25, -4.0], [0.002, 0.001, -0.003, -0.0005]
    found, _ = losses(Objective("soft-labels", temperature=cold), [(student, teacher)], 4)
    hard = [(-1) ** (t > 0) * s / cold for s, t in zip(student, teacher, strict=True)]
    expected = cold**2 * sum(math.log(1 + math.exp(h)) for h in hard) / 4
    assert float(found) == pytest.approx(expected, rel=1e-5)


@st.composite
def some_lists(chance: Any) -> list[tuple[list[float], list[float]]]:
    sizes = chance(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return [
        (
            chance(st.lists(NUMBERS, min_size=n, max_size=n)),
            [float(g) for g in chance(st.lists(st.integers(0, 3), min_size=n, max_size=n))],
        )
        for n in sizes
    ]


@pytest.mark.parametrize("kind", KINDS)
@given(some_lists(), st.integers(0, 4), st.tuples(NUMBERS, NUMBERS))
def test_padding_changes_nothing(
    kind: str, lists: Any, more: int, filling: tuple[float, float]
) -> None:
    """Whatever stands in it, loss and gradient are those of each list alone, and numbers."""
    width = max(len(x) for x, _ in lists) + more
    found, gradients = losses(Objective(kind), lists, width, filling)
    for number, one in enumerate(lists):
        size = len(one[0])
        alone, gradient = losses(Objective(kind), [one], size)
        np.testing.assert_allclose(found[number], alone[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(gradients[number, :size], gradient[0], rtol=1e-4, atol=1e-5)
        assert not gradients[number, size:].any()
    assert torch.isfinite(gradients).all()
    assert (found >= -1e-6).all()


@given(NUMBERS, NUMBERS, st.booleans())
def test_one_logit_is_two(no: float, yes: float, relevant: bool) -> None:
    """Binary cross-entropy of their difference is the papers' softmax cross-entropy of both."""
    two = torch.tensor([[no, yes]], dtype=torch.float64, requires_grad=True)
    label = torch.tensor([int(relevant)])
    expected = torch.nn.functional.cross_entropy(two, label)
    expected.backward()
    one = torch.tensor([[yes - no]], dtype=torch.float64, requires_grad=True)
    found = Objective().loss(one, label[:, None], torch.tensor([[True]]))
    found.sum().backward()
    torch.testing.assert_close(found.sum(), expected)
    torch.testing.assert_close(one.grad[0, 0], two.grad[0, 1])


@given(some_lists())
def test_a_student_equal_to_its_teacher_has_learnt(lists: Any) -> None:
    """Its loss is 0; for margins, also where all its log-odds lie higher by the same."""
    same = [(x, x) for x, _ in lists]
    for kind, teacher in (("soft", 0.0), ("soft-margin", 0.0), ("soft-margin", 5.0)):
        moved = [(x, [score + teacher for score in y]) for x, y in same]
        found, gradients = losses(Objective(kind), moved, 6)
        np.testing.assert_allclose(found, 0, atol=1e-9)
        np.testing.assert_allclose(gradients, 0, atol=1e-4)


@pytest.mark.parametrize("kind", ["ranknet", "margin", "softmax"])
def test_equal_grades_teach_nothing(kind: str) -> None:
    """Lists without a relevant text, or of one text: loss 0, gradient 0."""
    found, gradients = losses(Objective(kind), [([2.0, -50.0, 1.0], [0.0] * 3), ([9.0], [0.0])], 4)
    assert not found.any()
    assert not gradients.any()


@pytest.mark.parametrize("kind", KINDS)
def test_large_log_odds_have_gradients(kind: str) -> None:
    """Nothing overflows into NaN."""
    found, gradients = losses(Objective(kind), [([1e4, -1e4, 0.0], [0.0, 2.0, 1.0])], 5)
    assert torch.isfinite(found).all()
    assert torch.isfinite(gradients).all()
    assert gradients.any()


def test_what_is_no_objective() -> None:
    """Is told, with those that there are."""
    with pytest.raises(InputError, match=r"unknown objective 'hinge'.*pointwise, ranknet, margin"):
        Objective("hinge")
    for margin in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="margin is out of range: expected above 0"):
            Objective("margin", margin)
