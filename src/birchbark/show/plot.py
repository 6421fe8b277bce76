"""What does a plot of a study contain? Points, curves, bars or a scatter, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval, in a row and a series of a dot plot."""

    row: str
    series: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Dots:
    """A dot plot with intervals. A vertical line marks the value `reference`."""

    name: str
    title: str
    axis: str
    points: tuple[Point, ...]
    reference: float = 0.0


@dataclass(frozen=True, slots=True)
class Curves:
    """A plot of curves.

    Attributes:
        series: Name → points (x, y).
        marks: Values of x to mark with vertical lines.
        reference: A value of y to mark with a horizontal line; None for none.
        bands: Name → (x, low, high), the interval around a curve; None for none.
    """

    name: str
    title: str
    x_axis: str
    y_axis: str
    series: Mapping[str, tuple[tuple[float, float], ...]]
    marks: tuple[float, ...] = ()
    reference: float | None = None
    bands: Mapping[str, tuple[tuple[float, float, float], ...]] | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart, with bars in the order of `values`."""

    name: str
    title: str
    x_axis: str
    y_axis: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Scatter:
    """A scatter plot with a logarithmic x axis. A line joins the points on the Pareto front.

    Attributes:
        points: (name, x, y), where x is above 0. Higher values are better on both axes.
    """

    name: str
    title: str
    x_axis: str
    y_axis: str
    points: tuple[tuple[str, float, float], ...]

    @property
    def front(self) -> tuple[tuple[str, float, float], ...]:
        """The points on the Pareto front, which no other point dominates, by ascending x."""
        front = [
            point
            for point in self.points
            if not any(
                other[1] >= point[1] and other[2] >= point[2]
                for other in self.points
                if other[1:] != point[1:]
            )
        ]
        return tuple(sorted(front, key=lambda point: point[1]))


Plot = Dots | Curves | Bars | Scatter
