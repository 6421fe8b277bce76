"""How are published figures read from a recipe and added to our tables?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from birchbark import InputError
from birchbark.section import Section
from birchbark.show.table import Column, Group, Row, Table


def read_published(
    sections: Iterable[Section], layout: Mapping[str, tuple[Column, ...]]
) -> dict[str, tuple[Group, ...]]:
    """Read the entries of [[published]]: table, where, columns, and rows that start with a name.

    layout: table → its columns. Returns table → groups, with figures exactly as in the recipe.
    Raises InputError for an unknown table or column and for a row of the wrong length.
    """
    groups: dict[str, tuple[Group, ...]] = {}
    for section in sections:
        table = _one_of(section, "table", section.text("table"), layout)
        known = [column.name for column in layout[table]]
        columns = [_one_of(section, "columns", name, known) for name in section.texts("columns")]
        rows = tuple(_row(section, row, columns, known) for row in section.rows("rows"))
        groups[table] = (*groups.get(table, ()), Group(section.text("where"), rows, published=True))
        section.reject_unknown_keys()
    return groups


def with_published(table: Table, published: Mapping[str, tuple[Group, ...]]) -> Table:
    """Return `table` with these published groups at its end, instead of others."""
    measured = [group for group in table.groups if not group.published]
    groups = (*measured, *published.get(table.name, ()))
    return Table(table.name, table.title, table.stub, table.columns, groups, table.note)


def _one_of(section: Section, key: str, name: str, known: Iterable[str]) -> str:
    if name not in known:
        raise InputError(
            f"the study has no {name!r}",
            where=section.where(key),
            wanted=f"one of {', '.join(known)}",
        )
    return name


def _row(
    section: Section,
    values: tuple[str | int | float, ...],
    columns: Sequence[str],
    all_columns: list[str],
) -> Row:
    if len(values) != len(columns) + 1:
        raise InputError(
            "a row has the wrong length",
            where=section.where("rows"),
            wanted=f"a name and {len(columns)} figures",
            found=str(list(values)),
        )
    figures = dict(zip(columns, values[1:], strict=True))
    return Row.of(str(values[0]), (figures.get(name) for name in all_columns))
