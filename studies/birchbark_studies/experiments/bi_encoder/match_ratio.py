"""How is a table of candidate sets built, with match ratios and measures?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from birchbark import Qrels, Run, measure
from birchbark.show.table import Column, Row, Style
from birchbark_studies.comparison import measure_columns


def match_columns(measures: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of `match_rows`."""
    return (Column("match ratio", Style.SHARE), *measure_columns(measures))


def match_rows(
    matched: Mapping[str, tuple[float, Run]], qrels: Qrels, measures: Sequence[str]
) -> tuple[Row, ...]:
    """Make the rows of the table. matched: row → (match ratio averaged over queries, run)."""
    return tuple(
        Row.of(name, (ratio, *measure(qrels, run, measures).means.values()))
        for name, (ratio, run) in matched.items()
    )
