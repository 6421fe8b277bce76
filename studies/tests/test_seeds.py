"""What does the row that stands for several seeds show?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from birchbark.evaluate.measures import Results
from birchbark.evaluate.significance import compare
from birchbark_studies.seeds import (
    average_seeds,
    distinct,
    seeds_heading,
    seeds_layout,
    seeds_rows,
)

QUERIES = [f"q{i}" for i in range(1, 201)]
BASELINE = {query: (7 * i % 13 + 1) / (11 * i % 17 + 3) for i, query in enumerate(QUERIES)}


def results(tag: str, values: dict[str, float]) -> Results:
    return Results(tag, {"AP": values}, {"AP": sum(values.values()) / len(values)})


def test_the_mean_over_seeds_changes_no_query_that_no_seed_changes() -> None:
    """Rounding would make such a query better or worse than the baseline, by 1e-17."""
    raised = {**BASELINE, "q1": BASELINE["q1"] + 0.3}
    seeds = {f"MB, seed {i}": results("MB", BASELINE if i else raised) for i in range(3)}
    rows = average_seeds(seeds, dict.fromkeys(seeds, "MB"))
    assert rows["MB"].values["AP"]["q1"] == pytest.approx(BASELINE["q1"] + 0.1)
    (differences,) = compare(results("BM25", BASELINE), [rows["MB"]])
    assert (differences["AP"].better, differences["AP"].worse) == (1 / len(QUERIES), 0)


def test_the_spread_is_that_of_the_best_and_the_worst_seed() -> None:
    """A row that stands for one model is not in the table of seeds."""
    means = {"MB": 0.2, "MB, seed 1": 0.4, "MB, seed 2": 0.1, "QA": 0.9}
    evaluated = {row: results(row, {"q": mean}) for row, mean in means.items()}
    shown_as = {row: "MB" for row in means if row != "QA"}
    (row,) = seeds_rows("Tiny", evaluated, shown_as, "AP").rows
    assert row.name == "MB"
    assert [cell.value for cell in row.cells] == pytest.approx([0.2, 0.4, 0.1, 0.3])


def test_values_and_means_are_averaged_in_each_measure() -> None:
    """A row of one model only takes the row's name; others keep the counts of their first seed."""
    first = Results("x", {"AP": {"1": 0.5, "2": 0.25}, "RR": {"1": 1, "2": 0}}, {"AP": 0.375}, 3, 4)
    second = Results("y", {"AP": {"1": 0, "2": 0.5}, "RR": {"1": 0.5, "2": 0.5}}, {"AP": 0.25})
    alone = Results("z", {"AP": {"1": 1, "2": 1}}, {"AP": 1})
    rows = {"MB, seed 1": first, "QA": alone, "MB, seed 2": second}
    shown_as = {"MB, seed 1": "MB", "MB, seed 2": "MB"}
    assert average_seeds(rows, shown_as) == {
        "MB": Results(
            "MB",
            {"AP": {"1": 0.25, "2": 0.375}, "RR": {"1": 0.75, "2": 0.25}},
            {"AP": 0.3125},
            3,
            4,
        ),
        "QA": replace(alone, tag="QA"),
    }
    assert distinct(rows, shown_as) == ("MB", "QA")
    (row,) = seeds_rows("Tiny", rows, shown_as, "AP").rows
    assert (row.name, [cell.value for cell in row.cells]) == ("MB", [0.375, 0.25, 0.125])


def test_the_table_of_seeds() -> None:
    """It has a column per seed and one for the spread, and is left out without seeds."""
    (columns,) = seeds_layout([7, 8]).values()
    assert [column.name for column in columns] == ["seed 7", "seed 8", "spread"]
    assert seeds_layout([]) == {}
    heading = seeds_heading("model", "AP")
    assert (heading.title, heading.stub) == ("Seeds", "model")
    assert heading.note.startswith("Mean AP over the queries for each seed.")
