"""Do aggregation and interpolation keep their laws?"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.combine import aggregate as aggregate_module
from birchbark.combine.aggregate import (
    Aggregation,
    First,
    Max,
    Mean,
    Sum,
    Top,
    aggregate,
    parse_aggregation,
)
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.errors import InputError

SCORES = st.lists(st.floats(0, 1, width=32), max_size=12).map(lambda s: np.array(s, np.float32))
ANY_ORDER = [Top(), Top((1.0,)), Top((1, 0, 0.3, 0.2)), Max(), Sum(), Mean()]


def score(aggregation: Aggregation, scores: np.ndarray) -> float:
    return aggregate(scores, aggregation.weights(scores))


@pytest.mark.parametrize("aggregation", ANY_ORDER)
@given(scores=SCORES, random=st.randoms())
def test_the_order_of_segments_does_not_matter(aggregation, scores, random) -> None:  # type: ignore[no-untyped-def]
    """To the last bit, but for FirstP, whose point it is."""
    shuffled = scores.tolist()
    random.shuffle(shuffled)
    assert score(aggregation, scores) == score(aggregation, np.array(shuffled, np.float32))


@given(SCORES)
def test_aggregations_are_what_their_names_say(scores: np.ndarray) -> None:
    """Against numpy; a document without segments has no evidence."""
    if len(scores):
        best = np.sort(scores.astype(float))[::-1]
        assert score(First(), scores) == scores[0]
        assert score(Max(), scores) == best[0]
        assert score(Sum(), scores) == pytest.approx(best.sum())
        assert score(Mean(), scores) == pytest.approx(best.mean())
        weights = np.array([1, 0.5, 0.25])[: len(best)]
        assert score(Top(), scores) == pytest.approx((best[:3] * weights).sum())
    else:
        assert [score(a, scores) for a in (First(), *ANY_ORDER)] == [0.0] * (1 + len(ANY_ORDER))


def test_the_example_for_contributors_works() -> None:
    """CONTRIBUTING.md's new aggregation is a whole one, and is what its name says."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
    known: dict[str, Any] = dict(vars(aggregate_module))
    exec(textwrap.dedent(text.split("```python\n")[1].split("```")[0]), known)
    median: Aggregation = known["Median"]()
    scores = np.array([0.5, 0.125, 0.75, 0.25], np.float32)
    for each in (scores, scores[:3], scores[:0]):
        assert score(median, each) == (np.median(each) if len(each) else 0)
        assert score(median, each) <= median.most(len(each)) <= median.most()


@given(SCORES, st.integers(0, 11))
def test_more_evidence_is_never_worse(scores: np.ndarray, where: int) -> None:
    """Raising one segment's score lowers no aggregation."""
    if len(scores):
        raised = scores.copy()
        raised[where % len(scores)] = 1
        for aggregation in (First(), *ANY_ORDER[:2], *ANY_ORDER[3:]):
            assert score(aggregation, raised) >= score(aggregation, scores)


def test_of_equal_segments_the_earlier_is_shown() -> None:
    """So that evidence does not jump about."""
    assert Top((1.0,)).weights(np.array([0.2, 0.7, 0.7], np.float32)).tolist() == [0, 1, 0]


def test_equation_3_2_by_hand() -> None:
    """A · s_doc + (1 − a) · Σ w_i · s_i."""
    mix = Interpolation(0.6, Scale.RAW)
    evidence = score(Top((1, 0.5)), np.array([0.2, 0.8, 0.4], np.float32))
    first = mix.first_stage_parts(np.array([10.0], np.float32))
    total = first + mix.evidence_weight * evidence
    assert total[0] == pytest.approx(0.6 * 10 + 0.4 * (0.8 + 0.5 * 0.4))


def test_scales() -> None:
    """Raw as it is, max from the highest, minmax from 0 to 1; one candidate or none do no harm."""
    scores = np.array([8, 6, 4], np.float32)
    parts = {s: Interpolation(1, s).first_stage_parts(scores).tolist() for s in Scale}
    assert parts == {Scale.RAW: [8, 6, 4], Scale.MAX: [1, 0.75, 0.5], Scale.MINMAX: [1, 0.5, 0]}
    for scale in Scale:
        assert Interpolation(1, scale).first_stage_parts(np.array([], np.float32)).shape == (0,)
        zero = Interpolation(1, scale).first_stage_parts(np.zeros(2, np.float32))
        assert zero.tolist() == [0, 0]


def test_scores_below_zero_have_no_highest_to_divide_by() -> None:
    """Log-probabilities, say: refused for max, right for minmax."""
    scores = np.array([-1, -3], np.float32)
    with pytest.raises(InputError, match="minmax"):
        Interpolation(0.5).first_stage_parts(scores)
    assert Interpolation(1, Scale.MINMAX).first_stage_parts(scores).tolist() == [1, 0]


@pytest.mark.parametrize("a", [-0.1, 1.1, float("nan")])
def test_a_lies_between_0_and_1(a: float) -> None:
    """As in the paper."""
    with pytest.raises(InputError, match="first-stage weight is out of range"):
        Interpolation(a)


def test_names_of_aggregations() -> None:
    """As the command line spells them."""
    assert parse_aggregation("top:1,0.5") == Top((1.0, 0.5))
    assert [parse_aggregation(n) for n in ("first", "max", "sum", "mean")] == [
        First(),
        Max(),
        Sum(),
        Mean(),
    ]
    for bad in ("", "top", "top:", "top:a", "best", "max:1"):
        with pytest.raises(InputError, match="unknown aggregation"):
            parse_aggregation(bad)
    with pytest.raises(InputError, match="finite numbers from 0 up"):
        parse_aggregation("top:1,-1")


@pytest.mark.parametrize("weights", ["nan", "1,inf", "-1"])
def test_weights_of_the_top_are_numbers_of_0_or_more(weights: str) -> None:
    """A weight that is no number would give a score that is none."""
    with pytest.raises(InputError, match="finite numbers from 0 up"):
        parse_aggregation(f"top:{weights}")
