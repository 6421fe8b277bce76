"""Do tables and plots of runs show the differences that `compare` finds?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from birchbark.evaluate.measures import Results, measure
from birchbark.evaluate.significance import compare, mean_interval
from birchbark.records import Qrels, Ranking, Run
from birchbark.show.plot import Point
from birchbark.show.table import Cell, Column, Group, Row, Style
from birchbark_studies.comparison import (
    MAX_SYSTEMS,
    RANKS,
    Comparison,
    difference_dots,
    measure_columns,
    rank_curves,
    together,
    tuning_columns,
)

SETTINGS = Comparison(("AP", "RR"), "base", seed=3, level=0.2)


def systems(*tags: str) -> list[Results]:
    """Return random values in AP and RR for each tag."""
    random = np.random.default_rng(1)
    found = []
    for tag in tags:
        values = {
            name: dict(zip("123456789", random.uniform(size=9).tolist(), strict=True))
            for name in SETTINGS.measures
        }
        means = {name: sum(of.values()) / 9 for name, of in values.items()}
        found.append(Results(tag, values, means))
    return found


def test_rows_have_means_intervals_and_differences() -> None:
    """The order is as given; the baseline has no difference from itself."""
    a, base, b = systems("a", "base", "b")
    rows = SETTINGS.rows([a, base, b])
    assert [row.name for row in rows] == ["a", "base", "b"]
    of_a, of_b = compare(base, [a, b], seed=3, level=0.2)
    for row, result, differences in zip(rows, (a, base, b), (of_a, None, of_b), strict=True):
        for cell, name in zip(row.cells, ("AP", "RR"), strict=True):
            assert cell.value == result.means[name]
            values = np.array(list(result.values[name].values()))
            assert cell.interval == mean_interval(values, seed=3)
            assert cell.difference == (differences[name] if differences else None)


def test_what_is_not_compared_is_not_corrected_for() -> None:
    """Such a row has no difference, and the others are corrected for the rest."""
    base, a, b = systems("base", "a", "b")
    rows = SETTINGS.rows([base, a, b], not_compared=["a"])
    assert [cell.difference for cell in rows[1].cells] == [None, None]
    (expected,) = compare(base, [b], seed=3, level=0.2)
    assert [cell.difference for cell in rows[2].cells] == list(expected.values())


def test_the_correction_is_for_a_family_or_for_none() -> None:
    """A given family replaces the number of comparisons; without correction it is 1."""
    base, a = systems("base", "a")

    def corrected(settings: Comparison, family: int | None) -> list[float | None]:
        row = settings.rows([base, a], family=family)[1]
        return [cell.difference.corrected_p for cell in row.cells if cell.difference]

    p = [difference.p or 0 for difference in compare(base, [a])[0].values()]
    assert corrected(SETTINGS, None) == [min(1, 2 * each) for each in p]
    assert corrected(SETTINGS, 3) == [min(1, 3 * each) for each in p]
    assert corrected(replace(SETTINGS, bonferroni=False), 3) == p


def test_runs_are_evaluated_for_a_group() -> None:
    """Their rows are those of their results."""
    qrels = Qrels({"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 1}})
    ranked = {q: Ranking.of(["a", "b", "c"], [3, 2, 1]) for q in "123"}
    other = {**ranked, "3": Ranking.of(["c"], [1])}
    runs = [Run(ranked, "base"), Run(other, "other")]
    group = SETTINGS.group("Tiny", qrels, runs)
    assert group.name == "Tiny"
    assert group.rows == SETTINGS.rows([measure(qrels, run, ["AP", "RR"]) for run in runs])


def test_the_note_names_what_was_done() -> None:
    """It has the baseline, the level without its 0, the correction and the relevant grades."""
    note = SETTINGS.note()
    assert "difference from base, p < .2." in note
    assert "p from a paired t-test after Bonferroni correction" in note
    assert note == note.rstrip()
    other = replace(SETTINGS, bonferroni=False, relevance="Grades from 2 on count.")
    assert "difference from BM25, p < .2." in other.note("BM25")
    assert "t-test that is not corrected for the number of comparisons" in other.note()
    assert other.note().endswith(" Grades from 2 on count.")


def test_queries_of_all_collections_count_the_same() -> None:
    """Queries of two collections may share an id; a run that one of them lacks is left out."""
    first = {
        "base": Results("base", {"AP": {"1": 0.5, "2": 0.25, "3": 0.75}}, {"AP": 0.5}, 1, 4),
        "gone": Results("gone", {"AP": {"1": 1, "2": 1, "3": 1}}, {"AP": 1}),
    }
    second = {
        "other": Results("other", {"AP": {"1": 1}}, {"AP": 1}),
        "base": Results("base", {"AP": {"1": 0.125}}, {"AP": 0.125}, 2, 8),
    }
    (joined,) = together([first, second])
    assert (joined.tag, joined.unranked, joined.unjudged) == ("base", 3, 12)
    assert list(joined.values["AP"].values()) == [0.5, 0.25, 0.75, 0.125]
    assert joined.means == {"AP": 1.625 / 4}


def test_headings_of_columns() -> None:
    """There is one per measure, or one for each side of tuning."""
    assert measure_columns(["AP", "RR"]) == (
        Column("AP", Style.MEASURE),
        Column("RR", Style.MEASURE),
    )
    assert [column.name for column in tuning_columns("AP")] == ["AP, other folds", "AP, this fold"]


def test_differences_are_plotted() -> None:
    """Each system has a point per measure; with more than eight rows, in the first measure."""
    base, a = systems("base", "a")
    group = Group("Tiny", SETTINGS.rows([base, a]))
    (ap, rr) = compare(base, [a], seed=3, level=0.2)[0].values()
    (dots,) = SETTINGS.plots([group])
    assert (dots.name, dots.title) == ("differences-1", "Tiny")
    assert dots.axis == "difference from base"
    assert dots.points == (
        Point("a", "AP", ap.mean, ap.low, ap.high),
        Point("a", "RR", rr.mean, rr.low, rr.high),
    )
    empty = Row("none", (Cell(0.5), Cell(0.5)))
    for count, series in ((MAX_SYSTEMS, ["AP", "RR"]), (MAX_SYSTEMS + 1, ["AP"])):
        rows = (*group.rows, *[empty] * (count - 2))
        dots = difference_dots("d", Group("g", rows), ("AP", "RR"), "base")
        assert [point.series for point in dots.points] == series


def test_curves_over_ranks() -> None:
    """A query counts from the rank of its first relevant document on, up to the last rank."""
    far = [f"x{n:02}" for n in range(RANKS)]
    qrels = Qrels(
        {"1": {"a": 2, "b": 1}, "2": {"a": 1, "b": 2}, "3": {"z": 2}, "4": {"z": 2}}, relevant=2
    )
    rankings = {
        "1": ["a", "b"],
        "2": ["a", "b"],
        "3": [*far[:-1], "z"],  # at the last rank
        "4": [*far, "z"],  # below it
        "9": ["a"],
    }
    run = Run({q: Ranking.of(d, -np.arange(len(d))) for q, d in rankings.items()})
    curves = rank_curves("curves", "Tiny", qrels, {"some": run, "none": Run({})})
    assert (curves.name, curves.title) == ("curves", "Tiny")
    assert (curves.x_axis, curves.y_axis) == ("rank", "share of queries")
    middle = [(rank, 0.5) for rank in range(2, RANKS)]
    assert list(curves.series["some"]) == [(1, 0.25), *middle, (RANKS, 0.75)]
    assert curves.series["none"] == tuple((rank, 0) for rank in range(1, RANKS + 1))
    curves = rank_curves("curves", "Tiny", replace(qrels, relevant=1), {"some": run})
    more = [(rank, 0.5) for rank in range(1, RANKS)]  # documents without judgments do not count
    assert list(curves.series["some"]) == [*more, (RANKS, 0.75)]
