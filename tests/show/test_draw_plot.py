"""Are the ticks on logarithmic axes round, and is the Pareto front correct?"""

from __future__ import annotations

import pytest

from birchbark.show.draw_plot import _ticks
from birchbark.show.plot import Scatter


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (40, 700, [50, 100, 200, 500]),
        (52, 91, [60, 70, 80, 90]),
        (71, 78, [71, 73, 75, 77]),
        (0.05, 90_000, [0.05, 1, 20, 500, 10_000]),
    ],
)
def test_ticks_are_round_and_few(low: float, high: float, ticks: list[float]) -> None:
    """A logarithmic axis of any length has a few round ticks."""
    assert _ticks(low, high) == pytest.approx(ticks)


def test_pareto_front() -> None:
    """Equal points are both on the front; dominated points are not."""
    points = (("a", 1.0, 0.9), ("b", 2.0, 0.5), ("c", 2.0, 0.6), ("d", 1.5, 0.5), ("e", 1.0, 0.9))
    front = Scatter("s", "S", "x", "y", points).front
    assert [name for name, _, _ in front] == ["a", "e", "c"]
