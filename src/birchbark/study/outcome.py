"""What comes out of a study? Tables, plots, runs and queries that were looked at, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from birchbark.errors import InputError
from birchbark.records import Run
from birchbark.show.plot import Plot
from birchbark.show.table import Table


@dataclass(frozen=True, slots=True)
class TopicHit:
    """A document near the top, and the segments that brought it there, with their scores.

    grade: None where nobody judged it. before: its rank in what this is compared with;
    rank: its rank now.
    """

    doc_id: str
    grade: int | None
    before: int | None
    rank: int
    segments: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """One query looked at. before, after: its values by what is compared, and by the model.

    page: name of the page that shows what the model looked at in the first segment; empty if none.
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
    """All that a study found.

    runs: file name, without its suffix → run. models: name → fingerprint of each checkpoint used.
    settings: of what was trained, by its name. topics: shown in the report alone, since they quote
    the collections. pages: file name → HTML, beside the report.
    """

    tables: tuple[Table, ...]
    plots: tuple[Plot, ...]
    runs: Mapping[str, Run] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    topics: tuple[Topic, ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)


def check_run_names(rows: Sequence[str], where: str = "") -> None:
    """Raise InputError for two rows whose runs would have one name, before anything is ranked."""
    files = [run_file_name(row) for row in rows]
    for row, file in zip(rows, files, strict=True):
        if files.count(file) > 1:
            raise InputError(
                f"two rows would be called {row!r}, or have one file",
                where=where,
                remedy="rename the model",
            )


def run_file_name(name: str) -> str:
    """A run's name as one word, for files and tags: dashes for white space and such."""
    return re.sub(r"[^\w.+]+", "-", re.sub(r"\s*\+\s*", "+", name)).strip("-")
