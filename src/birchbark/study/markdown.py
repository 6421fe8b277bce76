"""How are a study's tables written as Markdown, to be read in a repository?"""

from __future__ import annotations

from collections.abc import Iterator

from birchbark.show.figures import difference, interval, mark, written
from birchbark.show.table import Cell, Column, Group, Style, Table
from birchbark.study.outcome import Outcome
from birchbark.study.recipe import Recipe


def markdown(recipe: Recipe, outcome: Outcome) -> str:
    """Title, source and all tables; a line for each row."""
    parts = [f"# {recipe.title}", recipe.source, *recipe.findings.split("\n")]
    for table in outcome.tables:
        parts += [f"## {table.title}", "\n".join(_lines(table)), table.note]
    parts.append(
        f"Made by `birchbark study run {recipe.path.name}`: BM25 with k1 {recipe.bm25.k1} and b "
        f"{recipe.bm25.b}, {recipe.depth} documents a query, seed {recipe.seed}. Figures marked "
        "*published* were printed by others, on other data; they were not measured here."
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _lines(table: Table) -> Iterator[str]:
    grouped = any(group.name for group in table.groups)
    heads = [*([""] if grouped else []), table.stub, *(column.name for column in table.columns)]
    yield _line(heads)
    left = len(heads) - len(table.columns)
    rules = ["---" if c.style is Style.TEXT else "---:" for c in table.columns]
    yield _line(["---"] * left + rules)
    for group in table.groups:
        for row in group.rows:
            cells = [_cell(c, column) for c, column in zip(row.cells, table.columns, strict=True)]
            yield _line([*([_group(group)] if grouped else []), row.name, *cells])


def _group(group: Group) -> str:
    return f"*published:* {group.name}" if group.published else group.name


def _cell(cell: Cell, column: Column) -> str:
    found = (
        written(cell.value, column.style) + mark(cell),
        interval(cell.interval),
        difference(cell.difference),
    )
    return "<br>".join(part for part in found if part)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
