"""How do findings take their numbers from the tables of their study?

Text in braces names a cell, {table / group / row / column}, or a part of it: {… / column / part}.
The group `published` is the figures of the papers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from birchbark import InputError
from birchbark.show.format_numbers import (
    format_bounds,
    format_interval,
    format_p,
    format_signed,
    format_value,
)
from birchbark.show.table import Cell, Column, Style, Table

ANY = "*"  # instead of a group, row or column: all of them, for one of CHOICES
MARK = "†"  # of significance, after published figures
PERCENT = " %"  # after published shares
PUBLISHED = "published"  # instead of a group: those of papers, which ANY leaves out
CHOICES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "max": max,
    "min": min,
    "median": median,
}
PARTS = ("value", "interval", "difference", "gain", "loss", "bounds", "p", "detectable")


def fill_in(findings: str, tables: Sequence[Table], where: str) -> str:
    """Return the findings with the values of cells instead of references to them.

    {A} is the value as its table shows it, {A - B} the difference of two values, and {max A},
    {min A} and {median A} are over all cells that a * in A stands for. PARTS after the column:
    `interval` is the value with its interval; of the difference from the baseline, `difference` is
    the mean with its interval, `gain` and `loss` its size without sign, `bounds` its interval, `p`
    the corrected p, and `detectable` the smallest that the queries could show. The group
    `published` stands for all published groups, and * for all others.

    where: the recipe, for errors. Raises InputError for a reference that names no cell, an empty
    one, or one without the part, for a `gain` that is negative, and for a `loss` that is positive.
    """

    def value(match: re.Match[str]) -> str:
        try:
            return _value(match[1], tables)
        except InputError as fault:
            raise fault.at(f"{where}: findings: {match[0]}") from None

    return re.sub(r"\{([^{}]*)\}", value, findings)


def _value(reference: str, tables: Sequence[Table]) -> str:
    first, minus, second = reference.partition(" - ")
    if minus:
        (a, _, style), (b, _, _) = _one(first, tables), _one(second, tables)
        return ("−" if a < b else "+") + format_value(abs(a - b), style)
    word, _, rest = reference.partition(" ")
    if word not in CHOICES:
        return _one(reference, tables)[1]
    found = _read(rest, tables)
    chosen = CHOICES[word]([number for number, _, _ in found])
    texts = [text for number, text, _ in found if number == chosen]
    return texts[0] if texts else format_value(chosen, found[0][2])


def _one(reference: str, tables: Sequence[Table]) -> tuple[float, str, Style]:
    found = _read(reference, tables)
    if len(found) > 1:
        raise InputError(f"{len(found)} cells", wanted=f"one, or {', '.join(CHOICES)} before it")
    return found[0]


def _read(reference: str, tables: Sequence[Table]) -> list[tuple[float, str, Style]]:
    """Return the number in each cell that a reference names, as text, and its column's style."""
    names = [name.strip() for name in reference.split("/")]
    if len(names) not in (4, 5) or (part := [*names, "value"][4]) not in PARTS:
        raise InputError(
            "not a reference to a cell",
            wanted=f"{{table / group / row / column}}, and one of {', '.join(PARTS)} after it",
        )
    cells = [
        (cell, column)
        for table in tables
        if table.name == names[0]
        for group in table.groups
        if names[1] in (group.name, PUBLISHED if group.published else ANY)
        for row in group.rows
        if names[2] in (row.name, ANY)
        for cell, column in zip(row.cells, table.columns, strict=True)
        if names[3] in (column.name, ANY)
    ]
    found = [
        (*read, column.style)
        for cell, column in cells
        if (read := _part(part, cell, column)) is not None
    ]
    if not found:
        message = f"the cell has no {part}" if cells else "no such cell"
        raise InputError(message, wanted=_choice(names[0], tables))
    return found


def _part(part: str, cell: Cell, column: Column) -> tuple[float, str] | None:
    """Return a part of a cell as a number, by which it is compared, and as text."""
    difference = cell.difference
    shown = format_value(cell.value, column.style).rstrip(MARK)
    if part in ("value", "interval"):
        if (number := _number(cell)) is None or (part == "interval" and not cell.interval):
            return None
        return number, shown if part == "value" else f"{shown} {format_interval(cell.interval)}"
    if difference is None:
        return None
    if part == "detectable":
        detectable = difference.detectable
        return None if detectable is None else (detectable, format_value(detectable, column.style))
    mean, bounds = format_signed(difference.mean), format_bounds(difference)
    if {"gain": "−", "loss": "+"}.get(part) == mean[0]:
        raise InputError(f"the difference is no {part}", found=f"{mean} {bounds}")
    if part == "p":
        p = difference.corrected_p
        return 1.0 if p is None else p, format_p(p)
    texts = {"difference": f"{mean} {bounds}", "bounds": bounds}
    return (-1 if part == "loss" else 1) * difference.mean, texts.get(part, mean[1:])


def _number(cell: Cell) -> float | None:
    """Return the value as a number; published ones are text, as they were printed."""
    value = cell.value
    if not isinstance(value, str):
        return value
    printed = value.rstrip(MARK)
    number = printed.removesuffix(PERCENT)
    try:
        return float(number) if number == printed else float(number) / 100
    except ValueError:
        return None


def _choice(name: str, tables: Sequence[Table]) -> str:
    """Say what can be named: the groups, rows and columns of the table, or the tables."""
    table = next((table for table in tables if table.name == name), None)
    if table is None:
        return f"one of the tables {', '.join(table.name for table in tables)}"
    rows = dict.fromkeys(row.name for group in table.groups for row in group.rows)
    return (
        f"of {name}, a group of {[group.name for group in table.groups]}, a row of {[*rows]} and a "
        f"column of {[column.name for column in table.columns]}"
    )
