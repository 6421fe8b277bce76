"""Which tables and plots show what pipelines give, and what they cost?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from birchbark.evaluate.measures import measure
from birchbark.records import Qrels, Run
from birchbark.show.plot import Curves, Plot, Scatter
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark.study.comparison import FIGURES, compared, difference_dots, measure_columns

FIRST = "first stage"
COSTS = (
    Column("parameters", Style.COUNT),
    Column("pairs a query", Style.DECIMAL),
    Column("comparisons a query", Style.DECIMAL),
    Column("queries a minute", Style.DECIMAL),
)
COST_NOTE = (
    "Parameters of all models of the pipeline; pairs of query and segment, and comparisons of two "
    "documents, that BERT reads. Queries a minute: of {timed} queries, ranked one after the other "
    "from the first stage's ranking on, models loaded, with nothing kept; each twice, the quicker "
    "time counts. They depend on the machine (manifest.json), and alone of all figures here differ "
    "from run to run."
)


@dataclass(frozen=True, slots=True)
class Cost:
    """parameters: of all models. pairs, comparisons, seconds: of a query, on average."""

    parameters: int
    pairs: float
    comparisons: float
    seconds: float


@dataclass(frozen=True, slots=True)
class PipelineRuns:
    """What was ranked on one collection: pipeline → its run, the first stage in front, and cost.

    timed: how many queries the time was taken of.
    """

    name: str
    qrels: Qrels
    runs: dict[str, Run]
    timed: int
    costs: dict[str, Cost] = field(default_factory=dict)


def layout(measures: Sequence[str]) -> Mapping[str, tuple[Column, ...]]:
    """Name → columns of the tables that `tables` makes."""
    return {"pipelines": measure_columns(measures), "costs": COSTS}


def tables(
    ranked: Sequence[PipelineRuns],
    measures: Sequence[str],
    baseline: str,
    seed: int,
) -> tuple[Table, Table]:
    """What the pipelines give, and what they cost; a group for each collection in each."""
    family = sum(len(one.runs) - 1 for one in ranked) * len(measures)
    given, costs = [], []
    for one in ranked:
        results = [measure(one.qrels, run, tuple(measures)) for run in one.runs.values()]
        given.append(Group(one.name, compared(results, baseline, seed, family)))
        costs.append(Group(one.name, tuple(_cost(*item) for item in one.costs.items())))
    return (
        Table(
            *("pipelines", "What they give", "pipeline", measure_columns(measures), tuple(given)),
            FIGURES.format(baseline=baseline, family=family),
        ),
        Table(
            *("costs", "What they cost", "pipeline", COSTS, tuple(costs)),
            COST_NOTE.format(timed=" and ".join(sorted({str(one.timed) for one in ranked}))),
        ),
    )


def plots(
    found: tuple[Table, Table], measures: Sequence[str], baseline: str, over: Mapping[str, float]
) -> tuple[Plot, ...]:
    """Differences, and quality against speed; or curves over a number of each row."""
    drawn: list[Plot] = []
    for number, (given, costs) in enumerate(zip(found[0].groups, found[1].groups, strict=True), 1):
        drawn.append(difference_dots(f"differences-{number}", given, measures, baseline))
        rows = {row.name: list(map(_number, row.cells)) for row in given.rows}
        speeds = {row.name: _number(row.cells[-1]) for row in costs.rows}
        drawn.append(
            Scatter(
                f"pareto-{number}",
                f"{given.name}: quality against speed",
                "queries a minute",
                measures[0],
                tuple((name, speed, rows[name][0]) for name, speed in speeds.items()),
            )
        )
        if over:
            series = {
                measure: tuple((over[name], rows[name][place]) for name in over)
                for place, measure in enumerate(measures)
            }
            drawn.append(Curves(f"over-{number}", given.name, "documents", "measure", series))
    return tuple(drawn)


def _number(cell: Cell) -> float:
    assert isinstance(cell.value, int | float)
    return float(cell.value)


def _cost(name: str, cost: Cost) -> Row:
    figures = cost.parameters, cost.pairs, cost.comparisons, 60 / cost.seconds
    return Row(name, tuple(map(Cell, figures)))
