"""Which figures did others print, and under which table of ours do they belong?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from birchbark.errors import InputError
from birchbark.section import Section
from birchbark.show.table import Cell, Column, Group, Row, Table


def read_published(
    sections: Iterable[Section], layout: Mapping[str, tuple[Column, ...]]
) -> dict[str, tuple[Group, ...]]:
    """Table → groups, from [[published]]: table, where, columns, and rows that begin with a name.

    layout: table → its columns. Figures are kept as the recipe has them. Raises InputError for a
    table or column that the study has not, and for a row of another length.
    """
    found: dict[str, tuple[Group, ...]] = {}
    for section in sections:
        table = _one_of(section, "table", section.text("table"), layout)
        ours = [column.name for column in layout[table]]
        columns = [_one_of(section, "columns", name, ours) for name in section.texts("columns")]
        rows = tuple(_row(section, row, columns, ours) for row in section.rows("rows"))
        found[table] = (*found.get(table, ()), Group(section.text("where"), rows, published=True))
        section.end()
    return found


def with_published(table: Table, published: Mapping[str, tuple[Group, ...]]) -> Table:
    """`table`, with the figures of others after ours."""
    groups = (*table.groups, *published.get(table.name, ()))
    return Table(table.name, table.title, table.stub, table.columns, groups, table.note)


def _one_of(section: Section, key: str, name: str, known: Iterable[str]) -> str:
    if name not in known:
        raise InputError(
            f"the study has no {name!r}",
            where=section.where(key),
            remedy=f"one of {', '.join(known)}",
        )
    return name


def _row(
    section: Section, values: tuple[str | int | float, ...], columns: Sequence[str], ours: list[str]
) -> Row:
    if len(values) != len(columns) + 1:
        raise InputError(
            "a row is of the wrong length",
            where=section.where("rows"),
            wanted=f"a name and {len(columns)} figures",
            found=str(list(values)),
        )
    given = dict(zip(columns, values[1:], strict=True))
    return Row(str(values[0]), tuple(Cell(given.get(name)) for name in ours))
