"""How do commands print messages and progress bars on standard error?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from birchbark.collection.intake import Intake
    from birchbark.index.index import Index
    from birchbark.pipeline.answer import SearchStats

T = TypeVar("T")
SHOWN_RECORDS = 5


class Advance(Protocol):
    """A function that advances a progress bar."""

    def __call__(self, steps: int, *, total: int | None = None, label: str | None = None) -> None:
        """Advance by `steps`; `total` and `label`, if given, set the bar's length and caption."""
        ...


def notify(text: str) -> None:
    """Print a message on standard error."""
    click.echo(text, err=True)


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Advance]:
    """Show a progress bar, and yield the function that advances it.

    Nothing is shown if standard error is not a terminal. total: number of steps, None if unknown.
    """
    _notify_of_compilation()
    if not sys.stderr.isatty():
        yield lambda steps, *, total=None, label=None: None
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
    from birchbark.index.compiled import on_first_compile

    on_first_compile(lambda: notify("compiling (takes a few seconds, only once per installation)"))


def counted(items: Iterable[T], advance: Callable[[int], None]) -> Iterator[T]:
    """Yield `items`, and call `advance` with 1 after each."""
    for item in items:
        yield item
        advance(1)


def first_few(ids: Iterable[str], count: int = 5) -> str:
    """Join the first `count` ids by commas for a message, with … if there are more."""
    shown = list(ids)
    return ", ".join(shown[:count]) + (", …" if len(shown) > count else "")


def report_intake(intake: Intake) -> None:
    """Print the notes of a reader, and the first records that it skipped."""
    for note, times in intake.notes.most_common():
        notify(f"  note: {note} ({times} times)" if times > 1 else f"  note: {note}")
    if intake.skipped:
        notify(f"  skipped {len(intake.skipped)} bad records:")
        for error in intake.skipped[:SHOWN_RECORDS]:
            notify(f"    {error}")
        if (more := len(intake.skipped) - SHOWN_RECORDS) > 0:
            notify(f"    … and {more} more")


def report_stats(stats: SearchStats, index: Index) -> None:
    """Print how many documents were scored with stored vectors, not scored, or truncated."""
    if stats.by_vectors:
        notify(f"{stats.by_vectors:,} documents were scored with stored vectors")
    elif "vectors" in index.attachments and stats.candidates and not _lacks_vectors(index):
        notify("note: stored vectors not used: they are of another model or other segments")
    if stats.scored < stats.candidates:
        reason = "the others cannot be among the best" if stats.exact else "the time budget ran out"
        notify(f"scored {stats.scored:,} of {stats.candidates:,} documents: {reason}")
    elif not stats.exact:
        notify("the time budget ran out before the best were rescored in fp32 or compared")
    if stats.truncated_tokens:
        tokens = f"{stats.truncated_tokens:,} tokens of {stats.truncated_documents:,} documents"
        notify(f"not scored, because of --max-segments or --max-length: {tokens}")
    if stats.truncated_compared:
        tokens = f"{stats.truncated_compared:,} tokens"
        notify(f"truncated, because an input of the duo model holds two texts: {tokens}")


def _lacks_vectors(index: Index) -> bool:
    """Whether some documents have no vectors, so that none of a query's candidates may have any."""
    from birchbark.pipeline.update_index import documents_without_vectors

    return any(documents_without_vectors(index))
