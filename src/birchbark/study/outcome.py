"""What comes out of a study? Tables, plots and runs, as values; how they look is not known here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from birchbark.evaluate.significance import Difference
from birchbark.records import Run

Value = float | int | str | None


class Style(Enum):
    """What kind of figures stand in a column."""

    TEXT = "text"
    COUNT = "count"
    MEASURE = "measure"
    SHARE = "share"
    DECIMAL = "decimal"


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column, and what stands below it."""

    name: str
    style: Style


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure; None where there is none.

    interval: low and high of its 95 % bootstrap interval. difference: from the table's baseline.
    """

    value: Value
    interval: tuple[float, float] | None = None
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A named row of cells, one a column."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together, of one collection mostly.

    published: not measured here but printed by others, on other data: to be marked wherever shown.
    """

    name: str
    rows: tuple[Row, ...]
    published: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a study.

    name: short, for files and recipes. title: what people read. note: what they need to know.
    stub: head of the column of row names.
    """

    name: str
    title: str
    stub: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    note: str = ""


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


@dataclass(frozen=True, slots=True)
class TopicHit:
    """A document near the top, and the segments that brought it there, with their scores.

    grade: None where nobody judged it. before: its rank in the first stage; rank: its rank now.
    """

    doc_id: str
    grade: int | None
    before: int | None
    rank: int
    segments: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """One query looked at. before, after: its value by the first stage, and by the model.

    page: name of the page that shows what the model looked at in the first segment; empty if none.
    """

    collection: str
    model: str
    query_id: str
    query: str
    before: float
    after: float
    hits: tuple[TopicHit, ...]
    page: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a study found.

    runs: file name, without its suffix → run. models: name → fingerprint of each checkpoint used.
    settings: of what was trained, by its name. topics: shown in the report alone, since they quote
    the collections. pages: file name → HTML, beside the report.
    """

    tables: tuple[Table, ...]
    plots: tuple[Plot, ...]
    runs: Mapping[str, Run] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    topics: tuple[Topic, ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)


def run_file_name(name: str) -> str:
    """A run's name as one word, for files and tags: dashes for white space and such."""
    return re.sub(r"[^\w.+]+", "-", re.sub(r"\s*\+\s*", "+", name)).strip("-")
