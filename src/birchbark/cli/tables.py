"""How do figures and hits look in a terminal?"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from birchbark.evaluate.measures import Results
    from birchbark.evaluate.significance import Difference
    from birchbark.pipeline.answer import Hit
    from birchbark.show.table import Group
    from birchbark.show.table import Table as StudyTable

SHOWN = 5  # segments of a hit
BEGINNING = 300  # characters of a text shown where there is no evidence


def console(least: int = 0) -> Console:
    """Standard output, at least `least` columns wide; 160 where it is not a terminal."""
    found = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    found.width = max(found.width, least)
    return found


def show_results(
    results: Sequence[Results], differences: Sequence[Mapping[str, Difference] | None]
) -> None:
    """A row a run: means, and under them the difference from the baseline where there is one."""
    names = list(results[0].values)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("run", overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for result, difference in zip(results, differences, strict=True):
        cells = [
            _cell(result.means[name], difference[name] if difference else None) for name in names
        ]
        table.add_row(Text(result.tag), *cells)
    out = console(24 + 27 * len(names))
    out.print(table, crop=False)
    compared = [d for d in differences if d]
    if compared:
        from birchbark.evaluate.significance import SIGNIFICANT

        count = len(compared) * len(names)
        out.print(
            f"Under each figure: difference from the first run and its 95 % interval (bootstrap "
            f"over queries);\np of the paired t-test, times {count} comparisons (Bonferroni). "
            f"† p < {SIGNIFICANT}."
        )


def show_grades(
    tags: Sequence[str], counts: Sequence[Mapping[int | None, int]], depth: int
) -> None:
    """A row a run: how many of the first documents have which grade."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(f"first {depth} documents", overflow="fold")
    for grade in counts[0]:
        table.add_column("unjudged" if grade is None else f"grade {grade}", justify="right")
    for tag, of_run in zip(tags, counts, strict=True):
        table.add_row(Text(tag), *(f"{count:,}" for count in of_run.values()))
    out = console()
    out.print()
    out.print(table, crop=False)


def _cell(mean: float, difference: Difference | None) -> Text:
    if difference is None:
        return Text(f"{mean:.4f} ")
    d = difference
    mark = "†" if d.significant else " "
    return Text(
        f"{mean:.4f}{mark}\n{d.mean:+.3f} [{d.low:+.3f}, {d.high:+.3f}] \np {_p(d.corrected_p)} "
    )


def _p(p: float | None) -> str:
    if p is None:
        return "undefined"
    return "< .0001" if p < 0.0001 else f"= {p:.4f}"


def show_hits(hits: Sequence[Hit]) -> None:
    """Each hit with its parts and the segments that made it rank, or else how its text begins."""
    out = console()
    for rank, hit in enumerate(hits, 1):
        head = Text(f"{rank:>2}. ", style="bold")
        head.append(hit.document.doc_id, style="bold cyan")
        head.append(f"  {hit.score:.3f}", style="bold")
        if not hit.settled:
            head.append("  not read", "dim")
        if hit.segments:
            parts = f" = {hit.first_stage:.3f} first stage + {hit.evidence:.3f} evidence"
            parts += f" + {hit.embedding:.3f} embedding" if hit.embedding else ""
            head.append(parts, "dim")
        if hit.compared is not None:
            head.append(f"; {hit.compared:.2f} by comparisons", "dim")
        out.print(head)
        if hit.document.title:
            out.print(Text(f"    {hit.document.title}"), no_wrap=True, overflow="ellipsis")
        for share in hit.segments[:SHOWN]:
            line = Text(f"    {share.score:.3f} × {share.weight:.2f}  ", style="green")
            line.append(" ".join(share.segment.text.split()), style="default")
            out.print(line, no_wrap=True, overflow="ellipsis")
        if left := len(hit.segments[SHOWN:]):
            out.print(Text(f"    and {left} more", style="dim"))
        if not hit.segments:
            beginning = " ".join(hit.document.text[:BEGINNING].split())
            out.print(Text(f"    {beginning}"), no_wrap=True, overflow="ellipsis")


def show_study(tables: Sequence[StudyTable]) -> None:
    """Each table with a row a line; what others published is dim, and said to be theirs."""
    for one in tables:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        table.add_column(one.stub, overflow="fold")
        for column in one.columns:
            left = column.style.value == "text"
            table.add_column(column.name, justify="left" if left else "right", no_wrap=True)
        for group in one.groups:
            _add_group(table, one, group)
        out = console(30 + 24 * len(one.columns))
        out.print(Text(f"\n{one.title}\n", style="bold"))
        out.print(table, crop=False)
        if one.note:
            out.print(Text(one.note))


def _add_group(table: Table, one: StudyTable, group: Group) -> None:
    from birchbark.show.figures import difference, interval, mark, written

    style = "dim" if group.published else ""
    if group.name:
        published = "PUBLISHED by others, not measured here: " if group.published else ""
        table.add_row(Text(f"{published}{group.name}", style=style or "bold"))
    for row in group.rows:
        cells = []
        for cell, column in zip(row.cells, one.columns, strict=True):
            lines = (
                f"{written(cell.value, column.style)}{mark(cell) or ' '}",
                interval(cell.interval),
                difference(cell.difference),
            )
            cells.append(Text("\n".join(line for line in lines if line.strip()), style=style))
        table.add_row(Text(f"  {row.name}", style=style), *cells)
