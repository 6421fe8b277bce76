"""Which tables and plots show what a model's evidence added?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from birchbark.combine.interpolate import Scale
from birchbark.evaluate.measures import Results, measure
from birchbark.evaluate.significance import compare
from birchbark.records import Run
from birchbark.show.plot import Curves, Dots
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark.study.comparison import (
    FIGURES,
    compared,
    difference_dots,
    measure_columns,
    rank_curves,
)
from birchbark.study.kinds.evidence_choices import EvidenceChoices
from birchbark.study.kinds.evidence_runs import EvidenceRuns, query_length

NOTE = (
    "Candidates: the first stage's best {depth}, those below keep their order. Score: a · first "
    "stage{scale} + (1 − a) · {evidence}{alone}Weights: of a grid in steps of {step:g} those with "
    "the best {tune} on the other folds. "
)
BEST = (
    "(s1 + w2 · s2 + …), s the scores of the document's best {best} of its segments ({segments}). "
)
AGGREGATED = "the {names} of the scores of its segments ({segments}). "
BESIDE = "{names}: of all its segments, in the place of the sum. "
SCALES = {
    Scale.MAX: ", divided by its highest,",
    Scale.MINMAX: ", scaled from 0 to 1,",
    Scale.RAW: "",
}
ALONE = "“alone” has a = 0. "
PRUNED = (
    "As above, but segments that hold a term of the query, stems compared, count as if they were "
    "not there; {best}. "
)
LENGTHS = "{tune} by terms of the query, stop words left out; {best}. "
TITLES = {
    "evidence": "First stage and evidence",
    "pruned": "Without the words of the query",
}
GAINS = "Queries whose {tune} is above the first stage's, and below it."


def layout(choices: EvidenceChoices, measures: Sequence[str]) -> Mapping[str, tuple[Column, ...]]:
    """Name → columns of the tables that `tables` makes."""
    weights = [Column(f"w{n}", Style.DECIMAL) for n in range(1, choices.most + 1)]
    tuned = [Column(f"{choices.tune}, {w}", Style.MEASURE) for w in ("other folds", "this")]
    found = {
        "evidence": measure_columns(measures),
        "against": measure_columns(measures),
        "pruned": measure_columns(measures),
        "lengths": tuple(Column(name, Style.MEASURE) for name in _classes(choices.lengths)),
        "gains": (Column("improved", Style.SHARE), Column("worse", Style.SHARE)),
        "weights": (Column("a", Style.DECIMAL), *weights, *tuned),
    }
    left_out = {
        "against": not choices.against,
        "pruned": not choices.pruned,
        "lengths": not choices.lengths,
    }
    return {name: columns for name, columns in found.items() if not left_out.get(name)}


def measured(
    choices: EvidenceChoices, ranked: Sequence[EvidenceRuns], measures: Sequence[str]
) -> list[dict[str, Results]]:
    """Run → values of all measures, and of the one that is tuned for; for each collection."""
    return [_results(one, one.runs, (*measures, choices.tune)) for one in ranked]


def tables(
    choices: EvidenceChoices,
    ranked: Sequence[EvidenceRuns],
    whole: Sequence[Mapping[str, Results]],
    measures: Sequence[str],
    seed: int,
) -> tuple[Table, ...]:
    """All tables, a group for each collection in each. whole: of `measured`."""
    heads = layout(choices, measures)
    found = [_compared("evidence", ranked, whole, measures, seed, _note(choices))]
    if choices.against:
        found.append(_against(choices, ranked, whole, measures, seed))
    if choices.pruned:
        pruned = [_results(one, one.pruned, measures) for one in ranked]
        note = PRUNED.format(best=_best(choices))
        found.append(_compared("pruned", ranked, pruned, measures, seed, note))
    if choices.lengths:
        found.append(_lengths(choices, ranked, whole, heads["lengths"], seed))
    return (
        *found,
        _gains(choices, ranked, whole, heads["gains"]),
        Table(
            *("weights", "Tuned weights", "model, fold", heads["weights"]),
            tuple(_weights(one) for one in ranked),
            "w is given as its part of 1 − a: what a segment's score is multiplied with.",
        ),
    )


def plots(
    choices: EvidenceChoices,
    found: Sequence[Table],
    ranked: Sequence[EvidenceRuns],
    measures: Sequence[str],
) -> tuple[Dots | Curves, ...]:
    """The differences from the first stage, and from the model chosen, for each collection."""
    baselines = {"evidence": [one.baseline for one in ranked]}
    baselines["against"] = [choices.against] * len(ranked)
    names = {"evidence": "differences", "against": "against"}
    dots = tuple(
        difference_dots(
            f"{names[table.name]}-{n}",
            replace(group, name=f"{group.name}, beside {baseline}"),
            *(measures, baseline),
        )
        for table in found
        if table.name in names
        for n, (group, baseline) in enumerate(
            zip(table.groups, baselines[table.name], strict=True), 1
        )
    )
    if not choices.ranks:
        return dots
    return *dots, *(
        rank_curves(
            *(f"ranks-{n}", f"{one.name}: a relevant document by this rank", one.qrels),
            {tag: run for tag, run in one.runs.items() if not tag.endswith(", alone")},
        )
        for n, one in enumerate(ranked, 1)
    )


def _results(
    one: EvidenceRuns, runs: Mapping[str, Run], measures: Sequence[str]
) -> dict[str, Results]:
    names = tuple(dict.fromkeys(measures))
    return {tag: measure(one.qrels, run, names) for tag, run in runs.items()}


def _compared(
    name: str,
    ranked: Sequence[EvidenceRuns],
    whole: Sequence[Mapping[str, Results]],
    measures: Sequence[str],
    seed: int,
    note: str,
) -> Table:
    """Means of the runs, and their differences from the baseline."""
    family = sum(len(results) - 1 for results in whole) * len(measures)
    groups = []
    for one, results in zip(ranked, whole, strict=True):
        some = [_only(result, measures) for result in results.values()]
        groups.append(Group(one.name, compared(some, one.baseline, seed, family)))
    figures = FIGURES.format(baseline="the first stage", family=family)
    return Table(
        *(name, TITLES[name], "ranked by", measure_columns(measures), tuple(groups)), note + figures
    )


def _against(
    choices: EvidenceChoices,
    ranked: Sequence[EvidenceRuns],
    whole: Sequence[Mapping[str, Results]],
    measures: Sequence[str],
    seed: int,
) -> Table:
    """Each model's differences from one of them: with the first stage, and alone."""
    kinds = ("", ", alone") if choices.alone else ("",)
    family = len(ranked) * (len(choices.names) - 1) * len(kinds) * len(measures)
    groups = []
    for one, results in zip(ranked, whole, strict=True):
        rows: list[Row] = []
        for kind in kinds:
            some = [_only(results[one.rows[name] + kind], measures) for name in choices.names]
            rows += compared(some, one.rows[choices.against] + kind, seed, family)
        groups.append(Group(one.name, tuple(rows)))
    figures = FIGURES.format(baseline=choices.against, family=family)
    title = f"Beside {choices.against}"
    return Table(
        *("against", title, "ranked by", measure_columns(measures), tuple(groups)), figures
    )


def _only(result: Results, measures: Sequence[str]) -> Results:
    """Without what was measured besides."""
    values = {name: result.values[name] for name in measures}
    return Results(result.tag, values, {name: result.means[name] for name in measures})


def _note(choices: EvidenceChoices) -> str:
    segments = _listed(choices.segments, choices.segments_of)
    names = ", ".join(choices.aggregations)
    if choices.best:
        evidence = BEST.format(best=", ".join(map(str, choices.best)), segments=segments)
        evidence += BESIDE.format(names=names) if names else ""
    else:
        evidence = AGGREGATED.format(names=names, segments=segments)
    return NOTE.format(
        depth=_listed(choices.depth, choices.depth_of),
        evidence=evidence,
        alone=ALONE if choices.alone else "",
        scale=SCALES[choices.scale],
        step=choices.step,
        tune=choices.tune,
    )


def _best(choices: EvidenceChoices) -> str:
    most = choices.most
    return f"with the best {most} segments" if most > 1 else "with the best segment"


def _listed(usual: object, own: Mapping[str, object]) -> str:
    """What holds for all collections, and for some."""
    return ", ".join([str(usual), *(f"of {name} {value}" for name, value in own.items())])


def _classes(highest: Sequence[int]) -> list[str]:
    """Names of the classes of length that end at each of `highest`, and of the last."""
    lows = [1, *(h + 1 for h in highest)]
    spans = [
        f"{low}" if low == high else f"{low}–{high}"
        for low, high in zip(lows, highest, strict=False)
    ]
    return [*spans, f"{lows[-1]} and more"]


def _lengths(
    choices: EvidenceChoices,
    ranked: Sequence[EvidenceRuns],
    whole: Sequence[Mapping[str, Results]],
    columns: tuple[Column, ...],
    seed: int,
) -> Table:
    """The tuned measure of each model's run, by classes of query length."""
    family = len(ranked) * len(choices.names) * len(columns)
    groups = []
    for one, results in zip(ranked, whole, strict=True):
        lengths = {query.query_id: query_length(query) for query in one.queries}
        classes: list[list[str]] = [[] for _ in columns]
        for query_id in one.qrels.grades:
            if query_id in lengths:
                place = sum(lengths[query_id] > high for high in choices.lengths)
                classes[place].append(query_id)
        counts = Row("queries", tuple(Cell(str(len(some))) for some in classes))
        shown = [results[tag] for tag in (one.baseline, *one.rows.values())]
        figures = [_by_class(shown, some, choices.tune, seed, family) for some in classes]
        table = [
            Row(tag, tuple(cells[place] for cells in figures))
            for place, tag in enumerate((one.baseline, *choices.names))
        ]
        groups.append(Group(one.name, (counts, *table)))
    note = LENGTHS.format(tune=choices.tune, best=_best(choices))
    figures_note = FIGURES.format(baseline="the first stage", family=family)
    return Table(
        *("lengths", "Length of queries", "ranked by", columns, tuple(groups), note + figures_note)
    )


def _by_class(
    results: Sequence[Results], query_ids: Sequence[str], name: str, seed: int, family: int
) -> list[Cell]:
    """A cell for each of `results`, the first of which is the baseline: means over some queries."""
    if not query_ids:
        return [Cell(None)] * len(results)
    some = [
        Results(one.tag, {name: {q: one.values[name][q] for q in query_ids}}, {}) for one in results
    ]
    means = [sum(one.values[name].values()) / len(query_ids) for one in some]
    if len(query_ids) < 2:
        return [Cell(mean) for mean in means]
    differences = compare(some[0], some[1:], seed=seed, family=family)
    return [Cell(means[0])] + [
        Cell(mean, None, found[name]) for mean, found in zip(means[1:], differences, strict=True)
    ]


def _gains(
    choices: EvidenceChoices,
    ranked: Sequence[EvidenceRuns],
    whole: Sequence[Mapping[str, Results]],
    columns: tuple[Column, ...],
) -> Table:
    groups = []
    for one, results in zip(ranked, whole, strict=True):
        base = results[one.baseline].values[choices.tune]
        rows = []
        for tag in (tag for tag in one.runs if tag != one.baseline):
            values = results[tag].values[choices.tune]
            shares = [
                sum(values[q] > base[q] for q in base),
                sum(values[q] < base[q] for q in base),
            ]
            rows.append(Row(tag, tuple(Cell(count / len(base)) for count in shares)))
        groups.append(Group(one.name, tuple(rows)))
    return Table(
        *("gains", "Queries that gain and lose", "ranked by", columns, tuple(groups)),
        GAINS.format(tune=choices.tune),
    )


def _weights(one: EvidenceRuns) -> Group:
    """Some mixtures have fewer parts than others."""
    most = max(tuning.weights.shape[1] for tuning in one.tunings.values())
    rows = []
    for name, tuning in one.tunings.items():
        for fold in range(len(tuning.folds)):
            weights = tuning.chosen_weights(fold)
            absent = (None,) * (most - len(weights))
            cells = map(Cell, (*weights, *absent, *tuning.means(fold)))
            rows.append(Row(f"{name}, {fold + 1}", tuple(cells)))
    return Group(one.name, tuple(rows))
