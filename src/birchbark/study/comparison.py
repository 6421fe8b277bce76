"""How do several runs of one test collection become rows of a table, and dots of a plot?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from birchbark.evaluate.measures import Results
from birchbark.evaluate.significance import compare, mean_interval
from birchbark.records import Qrels, Run
from birchbark.show.plot import Curves, Dots, Point
from birchbark.show.table import Cell, Column, Group, Row, Style

MANY = 8  # systems in a plot
RANKS = 20  # of a plot of ranks
FIGURES = (
    "Means over the judged queries; in brackets their 95 % interval (BCa bootstrap over queries). "
    "Below: difference from {baseline} with its 95 % interval, and the p of the paired t-test, "
    "times the {family} comparisons of this table (Bonferroni); d, the "
    "mean difference in standard deviations of the queries'. † p < .05."
)


def measure_columns(measures: Iterable[str]) -> tuple[Column, ...]:
    """A column a measure."""
    return tuple(Column(name, Style.MEASURE) for name in measures)


def compared(results: Sequence[Results], baseline: str, seed: int, family: int) -> tuple[Row, ...]:
    """A row for each of `results`, in their order: means, intervals, differences.

    baseline: tag of the result that the others are compared with. family: number of comparisons in
    the whole table, for Bonferroni. seed: of the bootstrap.
    """
    base = next(result for result in results if result.tag == baseline)
    others = [result for result in results if result is not base]
    differences = dict(
        zip(
            (result.tag for result in others),
            compare(base, others, seed=seed, family=family),
            strict=True,
        )
    )
    rows = []
    for result in results:
        found = differences.get(result.tag, {})
        cells = tuple(
            Cell(result.means[name], _interval(values, seed), found.get(name))
            for name, values in result.values.items()
        )
        rows.append(Row(result.tag, cells))
    return tuple(rows)


def _interval(values: Mapping[str, float], seed: int) -> tuple[float, float]:
    return mean_interval(np.array(list(values.values())), seed=seed)


def difference_dots(name: str, group: Group, measures: Sequence[str], baseline: str) -> Dots:
    """The differences in `group` from the baseline: a row a system, a series a measure.

    Of many systems the first measure alone.
    """
    shown = measures if len(group.rows) <= MANY else measures[:1]
    points = [
        Point(row.name, measure, d.mean, d.low, d.high)
        for row in group.rows
        for number, measure in enumerate(shown)
        if (d := row.cells[number].difference) is not None
    ]
    return Dots(name, group.name, f"difference from {baseline}", tuple(points))


def rank_curves(name: str, title: str, qrels: Qrels, runs: Mapping[str, Run]) -> Curves:
    """For each of `runs`, the share of judged queries with a relevant document so far.

    What figure 5.1 of the passages paper shows as a distribution, added up.
    """
    series = {}
    for tag, run in runs.items():
        found = np.zeros(RANKS)
        for query_id, grades in qrels.grades.items():
            ranking = run.rankings.get(query_id)
            top = ranking.doc_ids[:RANKS] if ranking else ()
            first = next((place for place, d in enumerate(top) if grades.get(d, 0) > 0), RANKS)
            found[first:] += 1
        series[tag] = tuple(enumerate((found / len(qrels.grades)).tolist(), 1))
    return Curves(name, title, "rank", "share of queries", series)
