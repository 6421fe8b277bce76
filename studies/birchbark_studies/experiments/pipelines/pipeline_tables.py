"""How are the effectiveness and cost of pipelines shown in tables and plots?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from birchbark import Qrels, Run, measure
from birchbark.evaluate.tune import Tuning
from birchbark.show.plot import Curves, Plot, Scatter
from birchbark.show.table import (
    Cell,
    Column,
    Group,
    Heading,
    Row,
    Style,
    Table,
    build_tables,
    columns,
)
from birchbark_studies.comparison import (
    Comparison,
    difference_dots,
    measure_columns,
    together,
    tuning_columns,
)
from birchbark_studies.experiments.pipelines.tuned import TunedWeights
from birchbark_studies.seeds import average_seeds, seeds_heading, seeds_rows

FIRST = "first stage"
TIMED_SECONDS = 20  # after which no other query of a row is timed
COSTS = (
    Column("parameters", Style.COUNT),
    *columns(Style.DECIMAL, "pairs per query", "comparisons per query", "queries per minute"),
)
COST_NOTE = (
    "Parameters: the total over all models of the pipeline. Pairs: query–segment pairs scored by "
    "BERT. Comparisons: document pairs compared by BERT. Queries per minute: measured on {timed} "
    "queries, or as many as begin within {seconds} seconds, one at a time, starting from the "
    "first-stage ranking, with the models loaded and without cached scores; the faster of two "
    "measurements counts. Times depend on the machine (manifest.json) and are the only figures "
    "here that differ between runs."
)


TOGETHER_NOTE = (
    "Over the queries of all collections, where each query counts the same; only pipelines that "
    "rank every collection. Intervals, tests and † as above."
)
WEIGHTS_NOTE = "For each fold, the weights with the best mean over the queries of the other folds."


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a pipeline.

    Attributes:
        parameters: The number of parameters of all its models.
        pairs, comparisons, seconds: Means over queries; seconds over the timed queries.
    """

    parameters: int
    pairs: float
    comparisons: float
    seconds: float


@dataclass(frozen=True, slots=True)
class PipelineRuns:
    """The runs on one collection.

    Attributes:
        runs: Row → run; the first row is the first stage, the others are pipelines.
        timed: The number of queries on which the times were measured.
        costs: Pipeline → its cost; that of tuned pipelines is measured with the stages as given.
        tunings: Tuned pipeline → the weights chosen for each fold.
    """

    name: str
    qrels: Qrels
    runs: dict[str, Run]
    timed: int
    costs: dict[str, Cost] = field(default_factory=dict)
    tunings: dict[str, Tuning] = field(default_factory=dict)


def layout(
    measures: Sequence[str], tuned: Mapping[str, TunedWeights], tune: str
) -> dict[str, tuple[Column, ...]]:
    """Map the name of each table of `tables` to its columns. tune: the measure of tuning."""
    heads = dict.fromkeys(("pipelines", "together"), measure_columns(measures)) | {"costs": COSTS}
    if tuned:
        names = columns(Style.DECIMAL, *_tuned_names(tuned))
        heads["weights"] = (*names, *tuning_columns(tune))
    return heads


def _tuned_names(tuned: Mapping[str, TunedWeights]) -> list[str]:
    return list(dict.fromkeys(name for weights in tuned.values() for name in weights.names))


def tables(
    collections: Sequence[PipelineRuns],
    comparison: Comparison,
    heads: Mapping[str, tuple[Column, ...]],
    shown_as: Mapping[str, str],
    tuned: Mapping[str, TunedWeights],
) -> tuple[Table, ...]:
    """Make the tables of effectiveness, cost, chosen weights and seeds, in this order.

    Each has a group for each collection. Of several collections, another table follows the first:
    their queries together, since one test over all can show what tests of each cannot.

    heads: the columns of each table.
    shown_as: row with one of several seeds → the row that stands for all of them.
    """
    baseline = "the first stage" if comparison.baseline == FIRST else comparison.baseline
    timed = " and ".join(sorted({str(collection.timed) for collection in collections}))
    cost_note = COST_NOTE.format(timed=timed, seconds=TIMED_SECONDS)
    by_model = [
        {
            run.tag: measure(collection.qrels, run, comparison.measures)
            for run in collection.runs.values()
        }
        for collection in collections
    ]
    averaged = [average_seeds(results, shown_as) for results in by_model]
    all_queries = together(averaged) if len(collections) > 1 else []
    headings = {
        "pipelines": Heading("Effectiveness", "pipeline", comparison.note(baseline)),
        "together": Heading("All queries together", "pipeline", TOGETHER_NOTE),
        "costs": Heading("Cost", "pipeline", cost_note),
        "weights": Heading("Weights by cross-validation", "pipeline, fold", WEIGHTS_NOTE),
        "seeds": seeds_heading("pipeline", comparison.measures[0]),
    }
    groups = {
        "pipelines": [
            Group(collection.name, comparison.rows(list(results.values())))
            for collection, results in zip(collections, averaged, strict=True)
        ],
        "together": [Group("", comparison.rows(all_queries))] if all_queries else [],
        "costs": [
            Group(collection.name, tuple(_cost_row(*item) for item in collection.costs.items()))
            for collection in collections
        ],
        "weights": [_weights(collection, tuned) for collection in collections],
        "seeds": [
            seeds_rows(collection.name, results, shown_as, comparison.measures[0])
            for collection, results in zip(collections, by_model, strict=True)
        ],
    }
    made = {name: heads[name] for name, of_table in groups.items() if name in heads and of_table}
    return build_tables(made, headings, groups)


def _weights(collection: PipelineRuns, tuned: Mapping[str, TunedWeights]) -> Group:
    """Make a row for each tuned pipeline and fold. Weights that it does not have are empty."""
    rows = []
    for name, tuning in collection.tunings.items():
        for fold in range(len(tuning.folds)):
            chosen = dict(zip(tuned[name].names, tuning.chosen_weights(fold), strict=True))
            cells = [chosen.get(option) for option in _tuned_names(tuned)]
            rows.append(Row.of(f"{name}, {fold + 1}", (*cells, *tuning.means(fold))))
    return Group(collection.name, tuple(rows))


def plots(
    effectiveness: Table, costs: Table, comparison: Comparison, over: Mapping[str, float]
) -> tuple[Plot, ...]:
    """Plot differences, effectiveness against speed, and measures over a varied option.

    over: row → its value of the option, the x coordinate; empty for no such plot.
    """
    drawn: list[Plot] = []
    measures = comparison.measures
    for number, (group, cost) in enumerate(zip(effectiveness.groups, costs.groups, strict=True), 1):
        drawn.append(difference_dots(f"differences-{number}", group, measures, comparison.baseline))
        rows = {row.name: list(map(_number, row.cells)) for row in group.rows}
        speeds = {row.name: _number(row.cells[-1]) for row in cost.rows}
        drawn.append(
            Scatter(
                f"pareto-{number}",
                f"{group.name}: effectiveness against speed",
                "queries per minute",
                measures[0],
                tuple((name, speed, rows[name][0]) for name, speed in speeds.items()),
            )
        )
        if over:
            series = {
                measure: tuple((over[name], rows[name][column]) for name in over)
                for column, measure in enumerate(measures)
            }
            drawn.append(Curves(f"over-{number}", group.name, "documents", "measure", series))
    return tuple(drawn)


def _number(cell: Cell) -> float:
    assert isinstance(cell.value, int | float)
    return float(cell.value)


def _cost_row(name: str, cost: Cost) -> Row:
    return Row.of(name, (cost.parameters, cost.pairs, cost.comparisons, 60 / cost.seconds))
