"""Is the scale of a model's scores fitted by maximum likelihood?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.evaluate.calibrate import fit_scale


def _sampled(shift: float, temperature: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return outputs and labels of pairs whose probabilities are those of a scale."""
    random = np.random.default_rng(0)
    outputs = shift + temperature * random.uniform(-6, 6, count)
    probabilities = 1 / (1 + np.exp(-(outputs - shift) / temperature))
    return outputs, random.random(count) < probabilities


@given(st.floats(-5, 5), st.floats(0.01, 20))
def test_the_scale_of_sampled_labels_is_found(shift: float, temperature: float) -> None:
    """With as many relevant pairs as others, the scale that made the labels has the best fit."""
    outputs, relevant = _sampled(shift, temperature, 20_000)
    found_shift, found_temperature = fit_scale(outputs, relevant)
    assert found_shift == pytest.approx(shift, abs=0.1 * temperature)
    assert found_temperature == pytest.approx(temperature, rel=0.05)


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_another_unit_gives_the_same_probabilities(offset: float, factor: float) -> None:
    """Shift and temperature follow a change of unit, so that scores stay the same."""
    outputs, relevant = _sampled(0.0, 2.0, 500)
    shift, temperature = fit_scale(outputs, relevant)
    moved = fit_scale(offset + factor * outputs, relevant)
    assert moved == pytest.approx(
        (offset + factor * shift, factor * temperature), rel=1e-5, abs=1e-5
    )


def test_the_share_of_relevant_pairs_does_not_matter() -> None:
    """Each pair that is not relevant given ten times is the same as given once."""
    outputs, relevant = _sampled(1.0, 3.0, 400)
    repeated = np.concatenate([outputs, *[outputs[~relevant]] * 9])
    labels = np.concatenate([relevant, np.zeros(9 * int((~relevant).sum()), bool)])
    assert fit_scale(repeated, labels) == pytest.approx(fit_scale(outputs, relevant), rel=1e-6)


def test_the_likelihood_is_highest() -> None:
    """Also with an output that is far from the others, whose probability is as good as 0."""
    outputs = np.array([-300.0, 0.0, 1.0, 2.0, 1.5, 3.0])
    relevant = np.array([False, False, True, False, True, True])

    def likelihood(shift: float, temperature: float) -> float:
        signs = np.where(relevant, 1, -1)
        return float(-np.logaddexp(0, -signs * (outputs - shift) / temperature).sum())

    shift, temperature = fit_scale(outputs, relevant)
    best = likelihood(shift, temperature)
    for change in (0.999, 1.001):
        assert likelihood(shift * change, temperature) < best
        assert likelihood(shift, temperature * change) < best


@pytest.mark.parametrize(
    ("outputs", "relevant", "message"),
    [
        ([1, 2], [True, True], "2 relevant pairs and 0 others"),
        ([1, 2, 3, 4], [False, False, True, True], "no relevant pair has a lower output"),
        ([1, 2, 2, 4], [False, False, True, True], "no relevant pair has a lower output"),
        ([4, 3, 1, 3.5], [False, False, True, True], "outputs of other pairs are as high"),
        ([3, 4, 1, 2], [False, False, True, True], "outputs of other pairs are as high"),
        ([1, 1], [False, True], "outputs of other pairs are as high"),
        ([1, np.nan], [False, True], "outputs that are not finite numbers"),
        ([2_093_383_184, -7, -69], [True, False, True], "very far from the others"),
    ],
)
def test_pairs_that_say_nothing_are_refused(
    outputs: list[float], relevant: list[bool], message: str
) -> None:
    """One class, perfect separation and a reversed order have no scale."""
    with pytest.raises(InputError, match=message):
        fit_scale(np.array(outputs, float), np.array(relevant))
