"""How do commands print messages and progress bars on standard error?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from birchbark.show.plural import plural
from birchbark.show.printable import printable, printable_json

if TYPE_CHECKING:
    from birchbark.collection.parsing.intake import Intake
    from birchbark.index.index import Index
    from birchbark.pipeline.answers.answer import SearchStats
    from birchbark.pipeline.settings.ranker import Ranker

T = TypeVar("T")
SHOWN_RECORDS = 20
NAMED = 5  # ids, or notes of one kind, in a message


class Advance(Protocol):
    """A function that advances a progress bar."""

    def __call__(self, steps: int, *, total: int | None = None, label: str | None = None) -> None:
        """Advance by `steps`; `total` and `label`, if given, set the bar's length and caption."""
        ...


def notify(text: str) -> None:
    """Print a message on standard error, without control characters."""
    click.echo(printable(text), err=True)


def print_json(value: object) -> None:
    """Print a value on standard output as JSON, for programs."""
    click.echo(printable_json(value, indent=2))


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Advance]:
    """Show a progress bar, and yield the function that advances it.

    If standard error is not a terminal, lines are written at intervals; if it is captured in
    memory, nothing is shown. total: number of steps, None if unknown.
    """
    if isinstance(sys.stderr, StringIO):
        yield lambda steps, *, total=None, label=None: None
        return
    _notify_of_compilation()
    if not sys.stderr.isatty():
        from birchbark.cli.progress_lines import ProgressLines

        yield ProgressLines(label, total, notify)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)

        def advance(steps: int, *, total: int | None = None, label: str | None = None) -> None:
            bar.update(task, advance=steps, total=total, description=label)

        yield advance


@cache
def _notify_of_compilation() -> None:
    from birchbark.compiled import on_first_compile

    on_first_compile(lambda: notify("compiling (takes a few seconds; kept for later)"))


def counted(items: Iterable[T], advance: Callable[[int], None]) -> Iterator[T]:
    """Yield `items`, and call `advance` with 1 after each."""
    for item in items:
        yield item
        advance(1)


def first_few(ids: Iterable[str]) -> str:
    """Join the first ids by commas for a message, with … if there are more."""
    shown = list(ids)
    return ", ".join(shown[:NAMED]) + (", …" if len(shown) > NAMED else "")


def _grouped(notes: Counter[str]) -> Iterator[tuple[str, int]]:
    """Yield notes with their counts, those that are equal up to a colon as one."""
    groups: dict[str, list[str]] = {}
    for note, _ in notes.most_common():
        groups.setdefault(note.partition(": ")[0], []).append(note)
    for kind, members in groups.items():
        told = members[0]
        if len(members) > 1:
            details = [f"{note.partition(': ')[2]} ({notes[note]:,})" for note in members]
            more = f", … and {len(details) - NAMED} more" if len(details) > NAMED else ""
            told = f"{kind}: {', '.join(details[:NAMED])}{more}"
        yield told, sum(notes[note] for note in members)


def report_intake(intake: Intake) -> None:
    """Print the notes of a reader, and the first records that it skipped."""
    for note, times in _grouped(intake.notes):
        notify(f"  note: {note} ({times:,} times)" if times > 1 else f"  note: {note}")
    if intake.skipped:
        notify(f"  skipped {plural(len(intake.skipped), 'bad record')}:")
        for error in intake.skipped[:SHOWN_RECORDS]:
            notify(f"    {error}")
        if (more := len(intake.skipped) - SHOWN_RECORDS) > 0:
            notify(f"    … and {more} more")


def report_cut_queries(tokens: int) -> None:
    """Print how many tokens of queries are not read, if any."""
    if tokens:
        notify(f"not read, because of query_tokens: {tokens:,} tokens of queries")


def report_stats(
    stats: SearchStats, index: Index, rankers: Sequence[Ranker], seconds: float | None = None
) -> None:
    """Print what was read by which model, and what was not read.

    rankers: the stages, whose models have read. seconds: the duration of the search.
    """
    if stats.pairs or stats.by_vectors < stats.candidates or not stats.exact:
        time_was_up = "" if stats.exact else "the time budget ran out: "
        duration = "" if seconds is None else f" in {seconds:.2f} s"
        notify(f"{time_was_up}{_reading(stats, rankers)}{duration}")
    if stats.by_vectors:
        notify(f"used the stored vectors of {plural(stats.by_vectors, 'document')}")
    elif stats.candidates and _all_have_vectors(index):
        notify(
            "note: stored vectors not used: none were made with this search's embedding model "
            "and segments"
        )
    if stats.exact and stats.unsplit_characters:
        notify(f"not considered: {stats.unsplit_characters:,} characters of very long documents")
    if stats.pairs and index.unread_fields:
        notify(f"searched but not read by models: {', '.join(index.unread_fields)}")
    report_cut_queries(stats.cut_query_tokens)
    if stats.truncated_tokens:
        tokens = (
            f"{stats.truncated_tokens:,} tokens of {plural(stats.truncated_documents, 'document')}"
        )
        notify(f"not scored, because of max_segments or max_length: {tokens}")
    if stats.truncated_compared:
        tokens = f"{stats.truncated_compared:,} tokens"
        notify(f"truncated, because an input of the duo model holds two texts: {tokens}")


def _reading(stats: SearchStats, rankers: Sequence[Ranker]) -> str:
    """Return how many segments each model has read, in words."""
    units = {ranker.unit for ranker in rankers}
    unit = units.pop() if len(units) == 1 else "segments"
    names = " and ".join(dict.fromkeys(ranker.scorer.name for ranker in rankers))
    text = f"read {stats.pairs - stats.embedded:,} of {stats.segments:,} {unit} with {names}"
    if stats.embedded:
        embeddings = dict.fromkeys(r.embedding.name for r in rankers if r.embedding)
        text += f", {stats.embedded:,} with {' and '.join(embeddings)}"
    return text


def _all_have_vectors(index: Index) -> bool:
    """Whether all documents have vectors of some set, so that any candidate has."""
    from birchbark.pipeline.stored.vector_sets import count_missing, vector_sets

    return any(not count_missing(index, name) for name in vector_sets(index.attachments))
