"""Are the ticks on logarithmic axes round, and is the Pareto front correct?"""

from __future__ import annotations

import re

import pytest

from birchbark.show.draw_plot import _ticks, draw
from birchbark.show.plot import Curves, Scatter


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


@pytest.mark.parametrize(("points", "markers"), [(20, 20), (21, 11), (96, 20)])
def test_markers_of_a_long_curve_are_few(points: int, markers: int) -> None:
    """A curve of many points marks some of them; the legend has one more marker."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    curve = draw(Curves("c", "C", "x", "y", {"a": tuple((float(x), 0.5) for x in range(points))}))
    assert len(re.findall("<use[^>]*series-1", curve)) == markers + 1


def test_pareto_front() -> None:
    """Equal points are both on the front; dominated points are not."""
    points = (("a", 1.0, 0.9), ("b", 2.0, 0.5), ("c", 2.0, 0.6), ("d", 1.5, 0.5), ("e", 1.0, 0.9))
    front = Scatter("s", "S", "x", "y", points).front
    assert [name for name, _, _ in front] == ["a", "e", "c"]
