"""How are models shown that differ only in their seed? As one row, beside a table of all seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from birchbark.evaluate.measures import Results
from birchbark.show.table import Column, Group, Heading, Row, Style, columns

SEEDS_NOTE = (
    "Mean {measure} over the queries for each seed. The tables of measures show the mean over the "
    "seeds, of each query where queries are compared; their intervals and tests are over queries. "
    "Spread: the highest minus the lowest."
)


def seeds_layout(seeds: Sequence[int]) -> dict[str, tuple[Column, ...]]:
    """Map the name of the table of seeds to its columns; empty without seeds."""
    names = (*(f"seed {seed}" for seed in seeds), "spread")
    return {"seeds": columns(Style.MEASURE, *names)} if seeds else {}


def seeds_heading(stub: str, measure: str) -> Heading:
    """Return the texts of the table of seeds. stub: the heading of its row names."""
    return Heading("Seeds", stub, SEEDS_NOTE.format(measure=measure))


def seeds_rows(
    name: str, results: Mapping[str, Results], shown_as: Mapping[str, str], measure: str
) -> Group:
    """Make a row for each row that stands for several seeds. Arguments: see `average_seeds`."""
    rows = []
    for row, of_seeds in _by_shown_row(results, shown_as).items():
        if len(of_seeds) > 1:
            means = [result.means[measure] for result in of_seeds]
            rows.append(Row.of(row, (*means, max(means) - min(means))))
    return Group(name, tuple(rows))


def average_seeds(
    results: Mapping[str, Results], shown_as: Mapping[str, str]
) -> dict[str, Results]:
    """Return row → evaluation, with the mean over the seeds of each query's value.

    results: row of each model → its evaluation, over the same queries and measures.
    shown_as: row of a model → the row that stands for all its seeds; others stay as they are.
    """
    return {
        row: replace(of_seeds[0], tag=row) if len(of_seeds) == 1 else _mean(row, of_seeds)
        for row, of_seeds in _by_shown_row(results, shown_as).items()
    }


def distinct(rows: Iterable[str], shown_as: Mapping[str, str]) -> tuple[str, ...]:
    """Return the rows as they are shown, each once, in the given order."""
    return tuple(dict.fromkeys(shown_as.get(row, row) for row in rows))


def _by_shown_row(
    results: Mapping[str, Results], shown_as: Mapping[str, str]
) -> dict[str, list[Results]]:
    grouped: dict[str, list[Results]] = {}
    for row, result in results.items():
        grouped.setdefault(shown_as.get(row, row), []).append(result)
    return grouped


def _mean(row: str, results: Sequence[Results]) -> Results:
    first = results[0]
    return replace(
        first,
        tag=row,
        values={
            name: {q: _average([r.values[name][q] for r in results]) for q in by_query}
            for name, by_query in first.values.items()
        },
        means={name: _average([r.means[name] for r in results]) for name in first.means},
    )


def _average(values: Sequence[float]) -> float:
    """Return the mean; of equal values exactly that value, so that no query seems to change."""
    first = values[0]
    return first + float(np.mean([value - first for value in values]))
