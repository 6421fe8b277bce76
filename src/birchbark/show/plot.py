"""What is a plot, before anybody knows how it looks? Dots, curves, bars or a scatter, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval, in a row of a plot, as part of a series."""

    row: str
    series: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Dots:
    """A plot of points with intervals, a row each; a line marks `reference`."""

    name: str
    title: str
    axis: str
    points: tuple[Point, ...]
    reference: float = 0.0


@dataclass(frozen=True, slots=True)
class Curves:
    """A plot of curves: series → its points (x, y).

    marks: values of x to be marked; reference: a value of y. bands: series → (x, low, high), the
    interval around it.
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
    """A plot of values, a bar each, in their order."""

    name: str
    title: str
    x_axis: str
    y_axis: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Scatter:
    """A plot of named points, x on a logarithmic scale; a line joins those that no other beats.

    points: (name, x above 0, y), both the better the higher.
    """

    name: str
    title: str
    x_axis: str
    y_axis: str
    points: tuple[tuple[str, float, float], ...]

    @property
    def front(self) -> tuple[tuple[str, float, float], ...]:
        """The points that no other equals in both and beats in one (Pareto), by rising x."""
        return tuple(
            sorted(
                (
                    one
                    for one in self.points
                    if not any(x >= one[1] and y >= one[2] for _, x, y in self._others(one))
                ),
                key=lambda point: point[1],
            )
        )

    def _others(self, one: tuple[str, float, float]) -> list[tuple[str, float, float]]:
        return [point for point in self.points if point[1:] != one[1:]]


Plot = Dots | Curves | Bars | Scatter
