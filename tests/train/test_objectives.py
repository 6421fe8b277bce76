"""Does each loss equal its definition, with finite gradients, and independent of padding?"""

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

torch = pytest.importorskip("torch", reason="torch is not installed")

KINDS = tuple(LOSSES)
LISTS = [
    ([0.5, -1.25, 2.0], [1.0, 0.0, 2.0]),
    ([0.0], [1.0]),
    ([3.0, -2.0], [0.0, 0.0]),
    ([1.0, 1.0, -4.0, 0.25], [0.0, 3.0, 1.0, 1.0]),
]
NUMBERS = st.floats(-30, 30, width=32)


def by_hand(kind: str, logits: Sequence[float], targets: Sequence[float], setting: float) -> float:
    """Compute the loss of one list from its definition."""
    x, y, n = list(map(float, logits)), list(map(float, targets)), range(len(logits))
    unequal = [x[i] - x[j] for i in n for j in n if y[i] > y[j]]
    shares = np.exp(x) / np.exp(x).sum()
    if kind in ("pointwise", "duo"):
        probabilities = [1 / (1 + math.exp(-s)) for s in x]
        terms = [-math.log(p if t > 0 else 1 - p) for p, t in zip(probabilities, y, strict=True)]
    elif kind == "ranknet":
        terms = [math.log(1 + math.exp(-gap)) for gap in unequal]
    elif kind == "margin":
        terms = [max(0, setting - gap) for gap in unequal]
    elif kind == "softmax":
        return -sum(t / sum(y) * math.log(s) for t, s in zip(y, shares, strict=True) if t > 0)
    elif kind == "listnet":
        goal = np.exp(y) / np.exp(y).sum()
        return float(-(goal * np.log(shares)).sum())
    elif kind == "soft":
        terms = [(s - t) ** 2 for s, t in zip(x, y, strict=True)]
    elif kind == "soft-labels":
        both = [[1 / (1 + math.exp(-v / setting)) for v in pair] for pair in zip(x, y, strict=True)]
        terms = [
            setting**2 * (t * math.log(t / p) + (1 - t) * math.log((1 - t) / (1 - p)))
            for p, t in both
        ]
    else:
        terms = [(x[i] - x[j] - (y[i] - y[j])) ** 2 for i in n for j in n if i != j]
    return sum(terms) / len(terms) if terms else 0.0


def padded(lists: Sequence[Sequence[float]], width: int, filling: float) -> Any:
    return torch.tensor([[*row, *[filling] * (width - len(row))] for row in lists])


def losses(
    objective: Objective, lists: Any, width: int, filling: tuple[float, float] = (0.0, 0.0)
) -> tuple[Any, Any]:
    """Return losses and gradients of lists that are padded to `width`."""
    logits = padded([x for x, _ in lists], width, filling[0]).requires_grad_()
    mask = torch.tensor([[i < len(x) for i in range(width)] for x, _ in lists])
    values = objective.loss(logits, padded([y for _, y in lists], width, filling[1]), mask)
    values.sum().backward()
    return values.detach(), logits.grad


@pytest.mark.parametrize("kind", KINDS)
def test_each_loss_equals_its_definition(kind: str) -> None:
    """Lists of several lengths are computed together."""
    for setting in (1.0, 2.5):
        found, _ = losses(Objective(kind, setting, setting), LISTS, 6)
        expected = [by_hand(kind, *own, setting) for own in LISTS]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.sampled_from([0.25, 1.0, 4.0]))
def test_soft_labels_of_an_equal_student_are_0(logits: list[float], temperature: float) -> None:
    """Both loss and gradient are 0."""
    same = Objective("soft-labels", temperature=temperature)
    found, gradient = losses(same, [(logits, logits)], len(logits))
    assert found.abs().max() < 1e-5
    assert gradient.abs().max() < 1e-6


def test_a_low_temperature_gives_hard_labels() -> None:
    """A temperature near 0 gives cross-entropy with labels of 0 and 1, for tiny logits."""
    cold = 1e-3
    teacher, student = [2.0, -1.5, 0.25, -4.0], [0.002, 0.001, -0.003, -0.0005]
    found, _ = losses(Objective("soft-labels", temperature=cold), [(student, teacher)], 4)
    hard = [(-1) ** (t > 0) * s / cold for s, t in zip(student, teacher, strict=True)]
    expected = cold**2 * sum(math.log(1 + math.exp(h)) for h in hard) / 4
    assert float(found) == pytest.approx(expected, rel=1e-5)


@st.composite
def some_lists(draw: Any) -> list[tuple[list[float], list[float]]]:
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return [
        (
            draw(st.lists(NUMBERS, min_size=n, max_size=n)),
            [float(g) for g in draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))],
        )
        for n in sizes
    ]


@pytest.mark.parametrize("kind", KINDS)
@given(some_lists(), st.integers(0, 4), st.tuples(NUMBERS, NUMBERS))
def test_padding_has_no_effect(
    kind: str, lists: Any, more: int, filling: tuple[float, float]
) -> None:
    """Loss and gradient of each list are those of the list alone, and finite."""
    width = max(len(x) for x, _ in lists) + more
    found, gradients = losses(Objective(kind), lists, width, filling)
    for number, own in enumerate(lists):
        size = len(own[0])
        alone, gradient = losses(Objective(kind), [own], size)
        np.testing.assert_allclose(found[number], alone[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(gradients[number, :size], gradient[0], rtol=1e-4, atol=1e-5)
        assert not gradients[number, size:].any()
    assert torch.isfinite(gradients).all()
    assert (found >= -1e-6).all()


@given(NUMBERS, NUMBERS, st.booleans())
def test_one_logit_equals_two(no: float, yes: float, relevant: bool) -> None:
    """Binary cross-entropy of the difference is softmax cross-entropy of both logits."""
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
def test_a_student_equal_to_its_teacher_has_no_loss(lists: Any) -> None:
    """For margins, the same holds for a student whose log-odds differ by a constant."""
    same = [(x, x) for x, _ in lists]
    for kind, teacher in (("soft", 0.0), ("soft-margin", 0.0), ("soft-margin", 5.0)):
        moved = [(x, [score + teacher for score in y]) for x, y in same]
        found, gradients = losses(Objective(kind), moved, 6)
        np.testing.assert_allclose(found, 0, atol=1e-9)
        np.testing.assert_allclose(gradients, 0, atol=1e-4)


@pytest.mark.parametrize("kind", ["ranknet", "margin", "softmax"])
def test_equal_grades_have_no_loss(kind: str) -> None:
    """Loss and gradient are 0 for lists without a relevant text and for lists of one text."""
    found, gradients = losses(Objective(kind), [([2.0, -50.0, 1.0], [0.0] * 3), ([9.0], [0.0])], 4)
    assert not found.any()
    assert not gradients.any()


@given(some_lists(), NUMBERS)
def test_softmax_leaves_out_texts_without_a_grade(lists: Any, logit: float) -> None:
    """Loss and gradient are those of the other texts."""
    softmax = Objective("softmax")
    expected, gradients = losses(softmax, lists, 6)
    found, found_gradients = losses(
        softmax, [([logit, *x], [math.nan, *y]) for x, y in lists], 7, (0.0, math.nan)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found_gradients[:, 1:], gradients, rtol=1e-4, atol=1e-6)
    assert not found_gradients[:, 0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_large_log_odds_have_finite_gradients(kind: str) -> None:
    """No intermediate value overflows to NaN."""
    found, gradients = losses(Objective(kind), [([1e4, -1e4, 0.0], [0.0, 2.0, 1.0])], 5)
    assert torch.isfinite(found).all()
    assert torch.isfinite(gradients).all()
    assert gradients.any()


def test_invalid_objectives() -> None:
    """The error lists the valid objectives."""
    with pytest.raises(InputError, match=r"unknown objective 'hinge'.*pointwise, ranknet, margin"):
        Objective("hinge")
    for margin in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="margin is out of range: expected a finite number"):
            Objective("margin", margin)
