"""How are the tables and plots of a study written to its results.json, and read again?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from birchbark.artifact import read_json
from birchbark.errors import ArtifactError
from birchbark.evaluate.significance import Difference
from birchbark.retrieve.bm25 import BM25
from birchbark.show.plot import Bars, Curves, Dots, Plot, Point, Scatter
from birchbark.show.table import Cell, Column, Group, Row, Style, Table

RESULTS = "results.json"


@dataclass(frozen=True, slots=True)
class StoredResults:
    """The tables and plots of a study, and the settings of its first stage.

    Attributes:
        tables, plots: Their values have six significant digits.
        depth: The number of documents per query in all runs.
        seed: The seed for folds, bootstrap and random scores.
        device: Where models were trained, and scored unless in int8: cpu, or cuda and the GPU.
    """

    tables: tuple[Table, ...]
    plots: tuple[Plot, ...]
    bm25: BM25
    depth: int
    seed: int
    device: str


def plain(value: Any) -> Any:
    """Convert `value` for JSON: floats to six significant digits, enums to values, no None."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, tuple | list):
        return [plain(inner) for inner in value]
    return value


def read_results(folder: Path) -> StoredResults:
    """Read the results of the study in `folder`.

    Raises InputError if there is no study, and ArtifactError if it is damaged.
    """
    path = folder / RESULTS
    values = read_json(path, "study")
    try:
        return StoredResults(
            tuple(map(_table, values["tables"])),
            tuple(map(_plot, values["plots"])),
            BM25(**values["bm25"]),
            values["depth"],
            values["seed"],
            values.get("device", "cpu"),  # not stored before there were results of a GPU
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError("damaged study", where=str(path), found=repr(error)) from None


def _table(values: Mapping[str, Any]) -> Table:
    columns = tuple(Column(c["name"], Style(c["style"])) for c in values["columns"])
    groups = tuple(
        Group(
            group["name"],
            tuple(Row(row["name"], tuple(map(_cell, row["cells"]))) for row in group["rows"]),
            group["published"],
        )
        for group in values["groups"]
    )
    return Table(values["name"], values["title"], values["stub"], columns, groups, values["note"])


def _cell(values: Mapping[str, Any]) -> Cell:
    interval, difference = values.get("interval"), values.get("difference")
    return Cell(
        values.get("value"),
        tuple(interval) if interval else None,
        _difference(difference) if difference else None,
    )


def _difference(values: Mapping[str, Any]) -> Difference:
    missing = dict.fromkeys(("p", "corrected_p", "effect"))  # None is not stored
    return Difference(**{**missing, **values})


def _plot(values: Mapping[str, Any]) -> Plot:
    """Make the kind of plot that has these fields."""
    if "series" in values:
        return Curves(**values)
    if "values" in values:
        return Bars(**values)
    if "axis" in values:
        return Dots(**{**values, "points": tuple(Point(**point) for point in values["points"])})
    return Scatter(**{**values, "points": tuple(map(tuple, values["points"]))})
