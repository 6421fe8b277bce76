"""What does a study produce? Tables, plots, runs and example queries, as plain values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from birchbark import InputError, Run
from birchbark.section import Section
from birchbark.show.plot import Plot
from birchbark.show.table import Table


@dataclass(frozen=True, slots=True)
class TopicHit:
    """A top document of an example query.

    Attributes:
        grade: Its grade; None if unjudged.
        before: Its rank in the baseline run; None if it is not ranked there.
        rank: Its rank in the model's run.
        segments: Its best segments, as (score, text).
    """

    doc_id: str
    grade: int | None
    before: int | None
    rank: int
    segments: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """An example query.

    Attributes:
        before, after: The value of the measure for the baseline run and for the model's run.
        hits: The top documents in the model's run.
        page: File name of the page that shows the model's attention for the best segment of the
            first document; empty if there is none.
    """

    collection: str
    model: str
    query_id: str
    query: str
    before: float
    after: float
    hits: tuple[TopicHit, ...]
    page: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a study.

    Attributes:
        runs: Name → run; `run_file_name` makes the file name.
        models: Name → fingerprint of each checkpoint used.
        topics: Example queries; shown only in the report, because they quote the collections.
        pages: File name → HTML page, stored beside the report.
    """

    tables: tuple[Table, ...]
    plots: tuple[Plot, ...]
    runs: Mapping[str, Run] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    topics: tuple[Topic, ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)


def check_run_names(rows: Sequence[str], where: str = "") -> None:
    """Raise InputError if the runs of two rows would get the same file name."""
    files = [run_file_name(row) for row in rows]
    for row, file in zip(rows, files, strict=True):
        if files.count(file) > 1:
            raise InputError(
                f"two rows are called {row!r}, or their runs share a file name",
                where=where,
                remedy="rename one of them",
            )


def run_file_name(name: str) -> str:
    """Return `name` as a file name and run tag: characters not allowed there become dashes."""
    return re.sub(r"[^\w.+]+", "-", re.sub(r"(?<!\s)\s*+\+\s*+", "+", name)).strip("-")


def new_row_name(row: Section, others: Iterable[str]) -> str:
    """Return the name of a row. Raises InputError if it or its run file's name is not unique."""
    name = row.text("name")
    if name in others:
        raise InputError(f"two rows are called {name!r}", where=row.where("name"))
    if run_file_name(name) in map(run_file_name, others):
        raise InputError("another row has the same run file name", where=row.where("name"))
    return name
