"""How are the runs on a test collection compared in tables and plots?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from birchbark import Qrels, Run, measure
from birchbark.evaluate.measures import Results
from birchbark.evaluate.significance import compare, mean_interval
from birchbark.show.plot import Curves, Dots, Point
from birchbark.show.table import Cell, Column, Group, Row, Style, columns

MAX_SYSTEMS = 8  # plots with more systems show only the first measure
RANKS = 20  # the last rank in a plot over ranks
COMPARISON_NOTE = (
    "Means over the judged queries, with 95 % intervals in brackets (BCa bootstrap over queries). "
    "† marks a significant difference from {baseline}, p < {level}. Differences are shown with "
    "their 95 % interval; p from a paired t-test {correction}; and d, the mean difference divided "
    "by its standard deviation over queries."
)
CORRECTED = "after Bonferroni correction for all comparisons in this table on the same collection"
NOT_CORRECTED = "that is not corrected for the number of comparisons"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The settings for comparing the runs in a table.

    Attributes:
        measures: The measures to show.
        baseline: The tag of the run with which the others are compared.
        seed: The seed for the bootstrap.
        level: A difference is significant if its corrected p is below this level.
        bonferroni: Whether p is corrected for the number of comparisons. Default True.
        relevance: Sentences on the grades that count as relevant, for the note. Default: none.
    """

    measures: tuple[str, ...]
    baseline: str
    seed: int
    level: float
    bonferroni: bool = True
    relevance: str = ""

    def rows(
        self,
        results: Sequence[Results],
        *,
        not_compared: Collection[str] = (),
        family: int | None = None,
    ) -> tuple[Row, ...]:
        """Return a row per result, in the given order, with means, intervals and differences.

        not_compared: tags of results that are shown without a difference from the baseline.
        family: the number of comparisons to correct for; by default those that are made here.
        """
        family = family if self.bonferroni else 1
        baseline = next(result for result in results if result.tag == self.baseline)
        others = [
            result
            for result in results
            if result is not baseline and result.tag not in not_compared
        ]
        compared = compare(baseline, others, seed=self.seed, family=family, level=self.level)
        differences = {
            result.tag: difference for result, difference in zip(others, compared, strict=True)
        }
        rows = []
        for result in results:
            difference = differences.get(result.tag, {})
            cells = tuple(
                Cell(result.means[name], self._interval(values), difference.get(name))
                for name, values in result.values.items()
            )
            rows.append(Row(result.tag, cells))
        return tuple(rows)

    def group(self, name: str, qrels: Qrels, runs: Iterable[Run]) -> Group:
        """Evaluate the runs on one collection. Returns their rows as a group."""
        return Group(name, self.rows([measure(qrels, run, self.measures) for run in runs]))

    def plots(self, groups: Iterable[Group]) -> tuple[Dots, ...]:
        """Plot the differences from the baseline, one plot per group."""
        return tuple(
            difference_dots(f"differences-{n}", group, self.measures, self.baseline)
            for n, group in enumerate(groups, 1)
        )

    def note(self, baseline: str = "") -> str:
        """Return the note that explains the values. baseline: its name, by default its tag."""
        note = COMPARISON_NOTE.format(
            baseline=baseline or self.baseline,
            level=f"{self.level:g}".removeprefix("0"),
            correction=CORRECTED if self.bonferroni else NOT_CORRECTED,
        )
        return f"{note} {self.relevance}".rstrip()

    def _interval(self, values: Mapping[str, float]) -> tuple[float, float]:
        return mean_interval(np.array(list(values.values())), seed=self.seed)


def together(of_collections: Sequence[Mapping[str, Results]]) -> list[Results]:
    """Return the evaluation of each run over the queries of all collections.

    of_collections: for each collection, tag → evaluation, by measures whose values are averaged.
    Runs that one of them lacks are left out.
    """
    joined = []
    for tag, first in of_collections[0].items():
        if not all(tag in results for results in of_collections):
            continue
        values = {
            name: {
                f"{number} {query_id}": value
                for number, results in enumerate(of_collections)
                for query_id, value in results[tag].values[name].items()
            }
            for name in first.values
        }
        means = {name: float(np.mean(list(of_all.values()))) for name, of_all in values.items()}
        unranked = sum(results[tag].unranked for results in of_collections)
        unjudged = sum(results[tag].unjudged for results in of_collections)
        joined.append(Results(tag, values, means, unranked, unjudged))
    return joined


def measure_columns(measures: Iterable[str]) -> tuple[Column, ...]:
    """Return a column for each measure."""
    return columns(Style.MEASURE, *measures)


def tuning_columns(measure: str) -> tuple[Column, ...]:
    """Return the columns for the tuned measure on the other folds and on this fold."""
    return columns(Style.MEASURE, f"{measure}, other folds", f"{measure}, this fold")


def match_rows(
    matched: Mapping[str, tuple[float, Run]], qrels: Qrels, measures: Sequence[str]
) -> tuple[Row, ...]:
    """Return a row for each set of candidates, with its match ratio and measures.

    matched: row → (match ratio averaged over queries, run).
    """
    return tuple(
        Row.of(name, (ratio, *measure(qrels, run, measures).means.values()))
        for name, (ratio, run) in matched.items()
    )


def difference_dots(name: str, group: Group, measures: Sequence[str], baseline: str) -> Dots:
    """Plot differences from the baseline, with one row per system and one series per measure.

    If the group has more than MAX_SYSTEMS rows, only the first measure is plotted.
    """
    shown = measures if len(group.rows) <= MAX_SYSTEMS else measures[:1]
    points = [
        Point(row.name, measure, d.mean, d.low, d.high)
        for row in group.rows
        for number, measure in enumerate(shown)
        if (d := row.cells[number].difference) is not None
    ]
    return Dots(name, group.name, f"difference from {baseline}", tuple(points))


def rank_curves(name: str, title: str, qrels: Qrels, runs: Mapping[str, Run]) -> Curves:
    """Plot for each run the share of judged queries with a relevant document at or above each rank.

    Figure 5.1 of the passages paper shows the same distribution, not cumulated.
    """
    series = {}
    for tag, run in runs.items():
        successes = np.zeros(RANKS)
        for query_id, grades in qrels.grades.items():
            ranking = run.rankings.get(query_id)
            top = ranking.doc_ids[:RANKS] if ranking else ()
            relevant = (rank for rank, d in enumerate(top) if grades.get(d, 0) >= qrels.relevant)
            first = next(relevant, RANKS)
            successes[first:] += 1
        series[tag] = tuple(enumerate((successes / len(qrels.grades)).tolist(), 1))
    return Curves(name, title, "rank", "share of queries", series)
