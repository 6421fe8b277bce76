"""What is a table, before anybody knows how it will look? Values; figures may have intervals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from birchbark.evaluate.significance import Difference

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
