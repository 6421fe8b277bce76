"""What does a table of a study contain? Columns, groups of rows, and values with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from birchbark.evaluate.significance import Difference

Value = float | int | str | None
LONGEST = 100  # rows of a table that is shown at once


class Style(Enum):
    """The kind of values in a column, which decides how they are formatted."""

    TEXT = "text"
    COUNT = "count"
    MEASURE = "measure"
    SHARE = "share"
    DECIMAL = "decimal"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading and the style of its values."""

    name: str
    style: Style


def columns(style: Style, *names: str) -> tuple[Column, ...]:
    """Return one column per name, all of the same style."""
    return tuple(Column(name, style) for name in names)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        value: None for an empty cell.
        interval: The bounds of its 95 % bootstrap interval; None for none.
        difference: The difference from the table's baseline; None for none.
    """

    value: Value
    interval: tuple[float, float] | None = None
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A named row with one cell per column."""

    name: str
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, name: str, values: Iterable[Value]) -> Row:
        """Make a row of plain values, without intervals or differences."""
        return cls(name, tuple(map(Cell, values)))


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together, usually for one collection.

    Attributes:
        published: Whether the values are quoted from the literature rather than measured here. They
            are marked as such wherever they are shown.
    """

    name: str
    rows: tuple[Row, ...]
    published: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a study.

    Attributes:
        name: A short identifier for files and recipes.
        title: The text above the table.
        stub: The heading of the column with the row names.
        note: The text below the table.
    """

    name: str
    title: str
    stub: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    note: str = ""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(len(group.rows) for group in self.groups)

    @property
    def is_folded(self) -> bool:
        """Whether it is shown on demand only, since it is long, such as one of tuned weights."""
        return self.rows > LONGEST


@dataclass(frozen=True, slots=True)
class Heading:
    """The texts of a table: title, heading of the column with the row names, and note."""

    title: str
    stub: str
    note: str = ""


def build_tables(
    layout: Mapping[str, tuple[Column, ...]],
    headings: Mapping[str, Heading],
    groups: Mapping[str, Iterable[Group]],
) -> tuple[Table, ...]:
    """Build the tables that have a heading, in the order of `layout`. Keys are table names."""
    return tuple(
        Table(name, text.title, text.stub, layout[name], tuple(groups[name]), text.note)
        for name in layout
        if (text := headings.get(name))
    )
