"""How are the tables of a study written as Markdown?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from birchbark.retrieve.bm25 import ALL
from birchbark.show.format_numbers import (
    format_difference,
    format_interval,
    format_value,
    significance_mark,
)
from birchbark.show.table import Cell, Column, Group, Style, Table
from birchbark.study.outcome import Outcome
from birchbark.study.recipe import Recipe


def render_markdown(recipe: Recipe, outcome: Outcome) -> str:
    """Render the title, source, findings and all tables, with one line per row."""
    parts = [f"# {_plain(recipe.title)}", recipe.source, *recipe.findings.split("\n")]
    for table in outcome.tables:
        parts += [f"## {_plain(table.title)}", "\n".join(_table_lines(table)), table.note]
    idf = "idf of all documents, " if recipe.bm25.idf_documents == ALL else ""
    parts.append(
        f"Made by `birchbark study run {recipe.path.name}`: BM25 with k1 {recipe.bm25.k1} and b "
        f"{recipe.bm25.b}, {idf}{recipe.depth} documents per query, seed {recipe.seed}. Figures "
        "marked *published* are quoted from the literature; they were not measured here."
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _table_lines(table: Table) -> Iterator[str]:
    grouped = any(group.name for group in table.groups)
    headings = [*([""] if grouped else []), table.stub, *(column.name for column in table.columns)]
    yield _table_row(map(_plain, headings))
    name_columns = len(headings) - len(table.columns)
    separators = ["---" if c.style is Style.TEXT else "---:" for c in table.columns]
    yield _table_row(["---"] * name_columns + separators)
    for group in table.groups:
        for row in group.rows:
            cells = [_cell(c, column) for c, column in zip(row.cells, table.columns, strict=True)]
            yield _table_row([*([_group(group)] if grouped else []), _plain(row.name), *cells])


def _group(group: Group) -> str:
    name = _plain(group.name)
    return f"*published:* {name}" if group.published else name


def _cell(cell: Cell, column: Column) -> str:
    lines = (
        _plain(format_value(cell.value, column.style)) + significance_mark(cell),
        format_interval(cell.interval),
        format_difference(cell.difference),
    )
    return "<br>".join(line for line in lines if line)


def _table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Escape what would end a table's cell or line, or begin HTML."""
    return " ".join(text.split()).replace("|", "&#124;").replace("<", "&lt;")
