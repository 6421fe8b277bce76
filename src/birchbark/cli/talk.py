"""How does the command line speak to people? On standard error, with progress where one watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from birchbark.collection.intake import Intake
    from birchbark.index.reader import Index
    from birchbark.pipeline.answer import Work

T = TypeVar("T")


class Advance(Protocol):
    """Moves a progress bar on by a number of steps; what is given besides it shows from then on."""

    def __call__(self, steps: int, *, total: int | None = None, label: str | None = None) -> None:
        """total: of all steps. label: in front of the bar."""
        ...


def say(text: str) -> None:
    """Tell the user something."""
    click.echo(text, err=True)


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Advance]:
    """A progress bar; call what it yields with the number of steps done.

    No bar where standard error is not a terminal. total: None if it is not known before.
    """
    _tell_of_compiling()
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
def _tell_of_compiling() -> None:
    from birchbark.index.compiled import when_compiling

    when_compiling(lambda: say("compiling, as after each installation: some seconds, once"))


def counted(items: Iterable[T], advance: Callable[[int], None]) -> Iterator[T]:
    """`items`, with one step of progress each."""
    for item in items:
        yield item
        advance(1)


def report_intake(intake: Intake) -> None:
    """Tell what a reader skipped and noted."""
    for note, times in intake.notes.most_common():
        say(f"  note: {note} ({times} times)" if times > 1 else f"  note: {note}")
    if intake.skipped:
        say(f"  skipped {len(intake.skipped)} bad records:")
        for error in intake.skipped[:5]:
            say(f"    {error}")
        if len(intake.skipped) > 5:
            say(f"    … and {len(intake.skipped) - 5} more")


def tell_work(work: Work, index: Index) -> None:
    """Say how much of the documents was read: what was not needed, and what was left out."""
    if work.by_vectors:
        say(f"{work.by_vectors:,} documents were scored by vectors that the index keeps")
    elif "vectors" in index.attachments and work.candidates:
        say("note: the index keeps vectors, but not of this model and these segments")
    if work.settled < work.candidates:
        reason = "the others cannot be among the best" if work.exact else "time was up"
        say(f"read {work.settled:,} of {work.candidates:,} documents: {reason}")
    elif not work.exact:
        say("time was up before the best were read again in fp32, or compared")
    if work.unread_tokens:
        where = f"{work.unread_tokens:,} tokens of {work.unread_documents:,} documents"
        say(f"not read, as asked: {where}")
    if work.unread_compared:
        say(f"not compared, since two texts share an input: {work.unread_compared:,} tokens")
