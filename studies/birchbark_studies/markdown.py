"""How are the tables of a study written as Markdown?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from birchbark.show.differences import difference_table
from birchbark.show.format_numbers import (
    format_interval,
    format_value,
    significance_mark,
)
from birchbark.show.table import Cell, Column, Group, Style, Table
from birchbark_studies.demonstration import demonstration_note
from birchbark_studies.findings import fill_in
from birchbark_studies.first_stages import first_stage_note
from birchbark_studies.recipe import Recipe
from birchbark_studies.stored_results import StoredResults

STALE = (
    "**Stale.** Since this was measured, something has changed: {reasons}. Findings, tables and "
    "figures are of that time; the description, and the size of training, are of the present "
    "recipe."
)


def render_markdown(
    recipe: Recipe, results: StoredResults, stale_because: Sequence[str] = ()
) -> str:
    """Render the title, source, findings, all tables, with one line per row, and all figures.

    stale_because: why the figures are not those of this version, if they are not. Raises
    InputError if the findings refer to a cell that no table has.
    """
    parts = [f"# {_plain(recipe.title)}", recipe.source]
    if stale_because:
        parts.append(STALE.format(reasons="; ".join(stale_because)))
    if note := demonstration_note(recipe):
        parts.append(f"**{note}**")
    parts += fill_in(recipe.findings, results.tables, str(recipe.path)).split("\n")
    for table in results.tables:
        lines = "\n".join(_table_lines(table))
        if table.is_folded:
            lines = f"<details><summary>{table.rows} rows</summary>\n\n{lines}\n\n</details>"
        parts += [f"## {_plain(table.title)}", lines, table.note]
        if differences := difference_table(table):
            lines = "\n".join(_table_lines(differences))
            parts += [f"### {differences.title}", lines, differences.note]
    if results.plots:
        parts.append("## Figures")
        for plot in results.plots:
            title = _plain(plot.title)
            parts.append(f"![{title}]({figure_file(plot.name)})\n\n{title}")
    option, where = " --larger" if recipe.larger else "", ""
    if settings := first_stage_note(recipe, results.bm25, results.depth, results.seed):
        settings = f": {settings}"
    if results.device != "cpu":
        kind, _, name = results.device.partition(" ")
        option += f" --device {kind}"
        where = f" on {name} (int8 always runs on the CPU)"
    parts.append(
        f"Made by `birchbark study run {recipe.path.name}{option}`{where}{settings}. Figures "
        "marked *published* are quoted from the literature; they were not measured here."
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def figure_file(plot: str) -> str:
    """Return the path of a plot's figure, relative to README.md. plot: its name."""
    return f"figures/{plot}.svg"


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
    value = _plain(format_value(cell.value, column.style)) + significance_mark(cell)
    return f"{value} {format_interval(cell.interval)}".strip()


def _table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Escape what would end a table's cell or line, or begin HTML."""
    return re.sub(r"<(?=[\w!?/])", "&lt;", " ".join(text.split()).replace("|", "&#124;"))
