"""How are the differences in a table shown? In a table of their own, with what they could show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from birchbark.evaluate.significance import Difference
from birchbark.show.format_numbers import MISSING, format_difference, format_value
from birchbark.show.table import Column, Group, Row, Style, Table

TITLE = "Differences"
POWER_NOTE = (
    "Smallest differences that these queries could show with a power of 80 % (median over the "
    "rows): {groups}."
)


def difference_table(table: Table) -> Table | None:
    """Return a table of the differences in the cells of `table`; None if it has none.

    Its note says how large a difference must be to be found; see `Difference.detectable`.
    """
    shown = [i for i in range(len(table.columns)) if any(_differences(table.groups, i))]
    if not shown:
        return None
    groups = []
    for group in table.groups:
        rows = tuple(
            Row.of(row.name, [format_difference(row.cells[i].difference) or MISSING for i in shown])
            for row in group.rows
            if any(row.cells[i].difference for i in shown)
        )
        if rows:
            groups.append(Group(group.name, rows))
    headings = tuple(Column(table.columns[i].name, Style.TEXT) for i in shown)
    return Table(
        f"{table.name}-differences", TITLE, table.stub, headings, tuple(groups), _power(table)
    )


def _power(table: Table) -> str:
    """Return which differences could have been found, for each group and measure."""
    parts = []
    for group in table.groups:
        found = []
        for i, column in enumerate(table.columns):
            values = [d.detectable for d in _differences([group], i) if d.detectable is not None]
            if values:
                found.append(f"{column.name} {format_value(median(values), Style.MEASURE)}")
        if found:
            name = f"{group.name}: " if group.name else ""
            parts.append(name + ", ".join(found))
    return POWER_NOTE.format(groups="; ".join(parts)) if parts else ""


def _differences(groups: Iterable[Group], column: int) -> Iterator[Difference]:
    for group in groups:
        for row in group.rows:
            if difference := row.cells[column].difference:
                yield difference
