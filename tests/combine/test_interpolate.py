"""Does interpolation compute what its definition says?"""

from __future__ import annotations

import numpy as np
import pytest

from birchbark.combine.aggregate import Aggregation, Top, weighted_sum
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.errors import InputError


def score(aggregation: Aggregation, scores: np.ndarray) -> float:
    return weighted_sum(scores, aggregation.weights(scores))


def test_equation_3_2_by_hand() -> None:
    """The score is a · s_doc + (1 − a) · Σ w_i · s_i."""
    mix = Interpolation(0.6, Scale.RAW)
    evidence = score(Top((1, 0.5)), np.array([0.2, 0.8, 0.4], np.float32))
    first = mix.weighted_first_stage(np.array([10.0], np.float32))
    total = first + mix.evidence_weight * evidence
    assert total[0] == pytest.approx(0.6 * 10 + 0.4 * (0.8 + 0.5 * 0.4))


def test_scales() -> None:
    """raw changes nothing, max divides by the maximum, minmax maps to [0, 1]; zeros stay zeros."""
    scores = np.array([8, 6, 4], np.float32)
    parts = {s: Interpolation(1, s).weighted_first_stage(scores).tolist() for s in Scale}
    assert parts == {Scale.RAW: [8, 6, 4], Scale.MAX: [1, 0.75, 0.5], Scale.MINMAX: [1, 0.5, 0]}
    for scale in Scale:
        assert Interpolation(1, scale).weighted_first_stage(np.array([], np.float32)).shape == (0,)
        zero = Interpolation(1, scale).weighted_first_stage(np.zeros(2, np.float32))
        assert zero.tolist() == [0, 0]


def test_scores_below_zero_cannot_be_divided_by_their_maximum() -> None:
    """Negative scores, such as log-probabilities, are refused under max and scaled under minmax."""
    scores = np.array([-1, -3], np.float32)
    with pytest.raises(InputError, match="minmax"):
        Interpolation(0.5).weighted_first_stage(scores)
    assert Interpolation(1, Scale.MINMAX).weighted_first_stage(scores).tolist() == [1, 0]


def test_the_highest_score_is_no_unit_for_scores_far_below_zero() -> None:
    """A share lies between −1 and 1; scores that would get others are refused."""
    weight = Interpolation(0.5).weighted_first_stage
    assert weight(np.array([0.75, -0.25, -0.75], np.float32)).tolist() == [0.5, -1 / 6, -0.5]
    with pytest.raises(InputError, match=r"further below 0: found -1\.5 to 0\.01 \(use.*minmax"):
        weight(np.array([0.01, -1.5], np.float32))
    for scores in ([0.25, -0.5], [-0.25, -0.5]):  # also where none is as far from 0 as 1
        with pytest.raises(InputError, match="further below 0"):
            weight(np.array(scores, np.float32))
    below = np.array([-3.0], np.float32)  # of documents that are no candidates
    assert weight(np.array([1.0], np.float32), below).tolist() == [0.5, -1.5]


@pytest.mark.parametrize("a", [-0.1, 1.1, float("nan")])
def test_a_is_between_0_and_1(a: float) -> None:
    """Weights outside [0, 1] and NaN are refused."""
    with pytest.raises(InputError, match="first-stage weight is out of range"):
        Interpolation(a)


def test_documents_below_the_candidates_do_not_change_the_scale() -> None:
    """Under minmax the lowest candidate has 0, and documents below it less."""
    scores, below = np.array([3, 2, 1], np.float32), np.array([0, -1], np.float32)
    shares = Interpolation(0.5, Scale.MINMAX).weighted_first_stage(scores, below)
    assert shares.tolist() == [0.5, 0.25, 0, -0.25, -0.5]


def test_equal_scores() -> None:
    """Under minmax they are as low as the lowest, under max as high as the highest."""
    scores = np.array([2, 2], np.float32)
    shares = {s: Interpolation(1, s).weighted_first_stage(scores).tolist() for s in Scale}
    assert shares == {Scale.RAW: [2, 2], Scale.MAX: [1, 1], Scale.MINMAX: [0, 0]}


def test_a_first_stage_without_weight() -> None:
    """It adds 0 to each document, and its scores need no scale."""
    mix = Interpolation(0, Scale.MAX)
    scores, below = np.array([-1, -3], np.float32), np.array([-4], np.float32)
    assert mix.weighted_first_stage(scores, below).tolist() == [0, 0, 0]
    assert mix.evidence_weight == 1


def test_the_name_of_a_scale() -> None:
    """A name becomes the scale that has it, and other names are refused."""
    assert Interpolation(scale="raw").scale is Scale.RAW
    with pytest.raises(InputError, match="unknown scale: expected raw or max or minmax"):
        Interpolation(scale="mean")
