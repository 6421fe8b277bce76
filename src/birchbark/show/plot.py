"""What is a plot, before anybody knows how it will look? Dots, curves or bars, as values."""

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
    """A plot of curves: series → its points (x, y). marks: values of x to be marked."""

    name: str
    title: str
    x_axis: str
    y_axis: str
    series: Mapping[str, tuple[tuple[float, float], ...]]
    marks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Bars:
    """A plot of values, a bar each, in their order."""

    name: str
    title: str
    x_axis: str
    y_axis: str
    values: tuple[float, ...]


Plot = Dots | Curves | Bars
