"""Is the scale that a model states applied to its outputs, and checked?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.checkpoint.score_scale import ScoreScale, read_scale
from birchbark.errors import CheckpointError

FINITE = st.floats(-20, 20)


@given(FINITE, FINITE, st.floats(0.1, 10))
def test_probabilities_have_their_log_odds(logit: float, shift: float, temperature: float) -> None:
    """The probability is the sigmoid of the scaled log-odds, and leads back to them."""
    scale = ScoreScale(shift, temperature)
    scaled = (logit - shift) / temperature
    (probability,) = scale.probabilities(np.array([logit]))
    assert probability == pytest.approx(1 / (1 + np.exp(-scaled)))
    if abs(scaled) < 15:
        assert scale.log_odds(np.array([probability])) == pytest.approx([logit], abs=1e-4)


def test_cosines_are_scaled_and_clipped() -> None:
    """Shift becomes 0, shift + temperature 1; without a scale only negative cosines change."""
    cosines = np.array([-0.5, 0.4, 0.5, 0.65, 0.9, 1.0], np.float32)
    scaled = ScoreScale(0.4, 0.5).similarities(cosines)
    np.testing.assert_allclose(scaled, [0, 0, 0.2, 0.5, 1, 1], atol=1e-6)
    np.testing.assert_array_equal(ScoreScale().similarities(cosines), np.clip(cosines, 0, 1))


def test_a_statement_is_read() -> None:
    """Either number can be stated alone; other keys are not those of a scale."""
    assert read_scale({}, "m") == ScoreScale()
    assert read_scale({"temperature": 3}, "m") == ScoreScale(0.0, 3.0, stated=True)
    assert read_scale({"shift": -1.5, "embedding_weight": 0.7}, "m") == ScoreScale(
        -1.5, stated=True
    )
    scale = ScoreScale(0.25, 4.0, stated=True)
    assert read_scale(json.loads(json.dumps(scale.as_config())), "m") == scale


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"temperature": 0}, "m: invalid temperature: expected a number above 0, found 0"),
        (
            {"temperature": float("nan")},
            "invalid temperature: expected a number above 0, found nan",
        ),
        ({"temperature": True}, "invalid temperature: expected a number above 0, found True"),
        ({"shift": "1"}, "invalid shift: expected a number, found '1'"),
        ({"shift": float("inf")}, "invalid shift: expected a number, found inf"),
    ],
)
def test_wrong_statements_are_refused(stated: dict[str, object], message: str) -> None:
    """A temperature is a number above 0, a shift a finite number."""
    with pytest.raises(CheckpointError, match=message):
        read_scale(stated, str(Path("m")))


def test_a_ranking_keeps_the_order_of_all_cosines() -> None:
    """Of those that are clipped at either end; the others have their scores."""
    cosines = np.array([-1.0, 0.39, 0.4, 0.6, 0.8, 0.899, 0.9, 0.901, 0.95, 0.951, 1.0], np.float32)
    scale = ScoreScale(0.4, 0.5)
    ranked = scale.ranking_similarities(cosines)
    assert ranked.dtype == np.float32
    assert (np.diff(ranked) > 0).all()
    assert 0 < ranked.min() < ranked.max() < 1
    np.testing.assert_array_equal(ranked[3:6], scale.similarities(cosines)[3:6])
    np.testing.assert_allclose(ranked, scale.similarities(cosines), atol=1e-3)


def test_low_cosines_keep_their_order() -> None:
    """What is clipped otherwise counts for a millionth at most, and what is not stays the same."""
    cosines = np.array([-1.0, 0.1, 0.39, 0.4, 0.4000001, 0.6, 1.0], np.float32)
    scale = ScoreScale(0.4, 0.5)
    ordered = scale.ordered_similarities(cosines)
    assert ordered.dtype == np.float32
    assert (np.diff(ordered) > 0).all()
    assert (ordered > 0).all()
    assert ordered[:4].max() <= 1e-6
    np.testing.assert_array_equal(ordered[5:], scale.similarities(cosines)[5:])
