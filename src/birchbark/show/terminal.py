"""How are evaluation results, hits and studies printed in a terminal?"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from birchbark import defaults
from birchbark.records import Places
from birchbark.show.plural import plural
from birchbark.show.printable import printable

if TYPE_CHECKING:
    from birchbark.evaluate.measures import Results
    from birchbark.evaluate.significance import Difference
    from birchbark.evaluate.tune import Tuning
    from birchbark.pipeline.answers.answer import Evidence, Hit
    from birchbark.show.table import Group
    from birchbark.show.table import Table as StudyTable

MAX_SEGMENTS = 5  # segments shown per hit
BEFORE_TERM = 20  # characters shown before the first term of the query, if it would be cut off
FILE_WIDTH = 160  # columns if standard output is not a terminal
_NO_FILES: Mapping[str, Path] = MappingProxyType({})
_WHITE_SPACE = re.compile(r"\s+")


def console(min_width: int = 0) -> Console:
    """Return standard output as a rich console of at least `min_width` columns."""
    out = Console(width=None if sys.stdout.isatty() else FILE_WIDTH, highlight=False)
    out.width = max(out.width, min_width)
    return out


def show_results(
    results: Sequence[Results],
    differences: Sequence[Mapping[str, Difference] | None],
    level: float = defaults.SIGNIFICANCE_LEVEL,
) -> None:
    """Print a row of means per run, each with the difference from the baseline below it.

    level: the level for which the differences were tested.
    """
    names = list(results[0].values)
    table = plain_table("run")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for result, difference in zip(results, differences, strict=True):
        cells = [
            _cell(result.means[name], difference[name] if difference else None) for name in names
        ]
        table.add_row(Text(printable(result.tag)), *cells)
    out = console(24 + 27 * len(names))
    out.print(table, crop=False)
    compared = [d for d in differences if d]
    if compared:
        count = len(compared) * len(names)
        out.print(
            f"Below each mean: difference from the first run with its 95 % interval (bootstrap "
            f"over queries);\np from a paired t-test, Bonferroni-corrected for "
            f"{plural(count, 'comparison')}. † p < {level:g}."
            f"{_detectable(compared, results)}"
        )


def _detectable(differences: Sequence[Mapping[str, Difference]], results: Sequence[Results]) -> str:
    """Return a sentence on the differences that could be found; empty if no query differs.

    A difference of more than 1 does not exist where no value is above 1.
    """
    from birchbark.show.format_numbers import format_value
    from birchbark.show.table import Style

    parts = []
    for name in results[0].values:
        found = [x for d in differences if (x := d[name].detectable) is not None]
        if found:
            highest = max(1, *(value for r in results for value in r.values[name].values()))
            smallest = median(found)
            shown = format_value(smallest, Style.MEASURE) if smallest <= highest else "none"
            parts.append(f"{name} {shown}")
    power = (
        "Smallest differences that these queries could show with a power of 80 % (median over runs)"
    )
    return f"\n{power}: {', '.join(parts)}." if parts else ""


def show_tuning(tuning: Tuning, names: Sequence[str], measure_name: str) -> None:
    """Print a row per fold: its weights, and the measure on the other folds and on this one.

    names: what each weight multiplies.
    """
    table = plain_table("fold")
    for name in ("queries", *names, f"{measure_name}, other folds", "this fold"):
        table.add_column(Text(printable(name)), justify="right")
    judged = set(tuning.query_ids)
    for number, fold in enumerate(tuning.folds):
        weights = [f"{weight:.3g}" for weight in tuning.chosen_weights(number)]
        means = [f"{mean:.4f}" for mean in tuning.means(number)]
        table.add_row(str(number + 1), str(len(judged & set(fold))), *weights, *means)
    out = console(30 + 12 * (len(names) + 2))
    out.print(table, crop=False)
    out.print()


def plain_table(first_column: str) -> Table:
    """Return a table without lines between rows, with its first column."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first_column, overflow="fold")
    return table


def show_grades(
    tags: Sequence[str], counts: Sequence[Mapping[int | None, int]], depth: int
) -> None:
    """Print a row per run: the number of its top `depth` documents with each grade."""
    table = plain_table(f"top {depth} documents")
    for grade in counts[0]:
        table.add_column("unjudged" if grade is None else f"grade {grade}", justify="right")
    for tag, counts_of_run in zip(tags, counts, strict=True):
        table.add_row(Text(printable(tag)), *(f"{count:,}" for count in counts_of_run.values()))
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


def show_hits(
    hits: Sequence[Hit], models: Sequence[str] = (), files: Mapping[str, Path] = _NO_FILES
) -> None:
    """Print each hit with the components of its score, and its evidence or its snippet.

    Terms of the query are bold in a terminal. models: what the share of the main scorer is called,
    for each stage; of several stages, each hit names the one that its score is from. files: the
    absolute paths of documents' files, to which their ids are links in a terminal (OSC 8).
    """
    out = console()
    for rank, hit in enumerate(hits, 1):
        out.print(_heading(rank, hit, models, files.get(hit.document.doc_id)))
        if hit.document.title:
            out.print(Text(f"    {_line(hit.document.title)}"), no_wrap=True, overflow="ellipsis")
        if hit.copies:
            copies = ", ".join(map(_line, hit.copies))
            out.print(Text(f"    also in {copies}", "dim"))
        places = Places(hit.document)
        for evidence in hit.segments[:MAX_SEGMENTS]:
            line = _evidence_line(places, evidence, out.width)
            out.print(line, no_wrap=True, overflow="ellipsis")
        if more := len(hit.segments[MAX_SEGMENTS:]):
            out.print(Text(f"    and {more} more", style="dim"))
        if hit.snippet:
            text = _passage(hit.snippet.segment.text, hit.snippet.marks, out.width - 4)
            out.print(Text("    ") + text, no_wrap=True, overflow="ellipsis")


def _heading(rank: int, hit: Hit, models: Sequence[str], file: Path | None) -> Text:
    """Return the rank, id and score of a hit, with the components of the score."""
    heading = Text(f"{rank:>2}. ", style="bold")
    link = f" link {file.as_uri()}" if file else ""
    heading.append(_line(hit.document.doc_id), style=f"bold cyan{link}")
    heading.append(f"  {hit.score:.3f}", style="bold")
    if hit.segments or hit.embedding:
        parts = (
            (f"stage {hit.stage - 1}" if hit.stage > 1 else "first stage", hit.first_stage),
            ("embedding", hit.embedding),
            (dict(enumerate(models, 1)).get(hit.stage, ""), hit.evidence),
        )
        shown = [f"{value:.3f} {name}" for name, value in parts if value]
        heading.append(f" = {' + '.join(shown)}" if shown else "", "dim")
    if hit.stage and len(models) > 1:
        heading.append(f"; stage {hit.stage} of {len(models)}", "dim")
    if not hit.scored:
        heading.append("; not read", "dim")
    if hit.compared is not None:
        heading.append(f"; {hit.compared:.2f} by comparisons", "dim")
    return heading


def _evidence_line(places: Places, evidence: Evidence, width: int) -> Text:
    line = Text(f"    {evidence.score:.3f} × {evidence.weight:.2f}  ")
    line.stylize("green")
    if page := places.page(evidence.begin):
        line.append(f"p. {page}: ", "dim")
    elif number := places.line(evidence.begin):
        line.append(f"line {number}: ", "dim")
    start, end = evidence.shown
    marks = [(a - start, b - start) for a, b in evidence.marks if start <= a and b <= end]
    return line + _passage(evidence.text, marks, width - len(line))


def _passage(text: str, marks: Sequence[tuple[int, int]], width: int) -> Text:
    """Return a text on one line with the query's terms in bold.

    It begins shortly before the first term if the line of this width would end before that term,
    and ends after a word.
    """
    line, done, first = Text(), 0, None
    for start, end in [*marks, (len(text), len(text))]:
        line.append(_line(text[done:start]))
        line.append(_line(text[start:end]), style="bold")
        done, first = end, len(line) if first is None else first
    if first is not None and marks and first > width:
        start = first - (marks[0][1] - marks[0][0])
        near = line.plain.find(" ", max(0, start - BEFORE_TERM), start) + 1
        begin = near or max(0, start - BEFORE_TERM)
        if start - begin + len("… ") + marks[0][1] - marks[0][0] > width:  # only the term fits
            begin = line.plain.rfind(" ", 0, start) + 1
        line = Text("… ") + line[begin:] if begin else line
    end = line.plain.rfind(" ", 0, width - 1)  # a word is not cut, unless there is no other
    return line[:end] + Text(" …") if len(line) > width and end > 0 else line


def _line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return printable(_WHITE_SPACE.sub(" ", text))


def show_study(tables: Sequence[StudyTable]) -> None:
    """Print the tables of a study. Published figures are dimmed and marked as published."""
    from birchbark.show.differences import difference_table

    for study_table in tables:
        _print_table(study_table)
        if differences := difference_table(study_table):
            _print_table(differences)


def _print_table(study_table: StudyTable) -> None:
    table = plain_table(study_table.stub)
    for column in study_table.columns:
        is_text = column.style.value == "text"
        table.add_column(column.name, justify="left" if is_text else "right", no_wrap=True)
    for group in study_table.groups:
        _add_group(table, study_table, group)
    out = console(30 + 45 * len(study_table.columns))
    out.print(Text(f"\n{study_table.title}\n", style="bold"))
    out.print(table, crop=False)
    if study_table.note:
        out.print(Text(study_table.note))


def _add_group(table: Table, study_table: StudyTable, group: Group) -> None:
    from birchbark.show.format_numbers import format_interval, format_value, significance_mark

    style = "dim" if group.published else ""
    if group.name:
        published = "PUBLISHED, not measured here: " if group.published else ""
        table.add_row(Text(f"{published}{group.name}", style=style or "bold"))
    for row in group.rows:
        cells = []
        for cell, column in zip(row.cells, study_table.columns, strict=True):
            value = f"{format_value(cell.value, column.style)}{significance_mark(cell) or ' '}"
            cells.append(Text(f"{value} {format_interval(cell.interval)}".rstrip(" "), style=style))
        table.add_row(Text(f"  {row.name}", style=style), *cells)
