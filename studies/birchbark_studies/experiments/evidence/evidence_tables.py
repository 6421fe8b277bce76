"""How are the results of an evidence study shown in tables and plots?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from birchbark import Query, Run, measure
from birchbark.combine.interpolate import Scale
from birchbark.evaluate.measures import Results
from birchbark.evaluate.significance import compare, mean_interval
from birchbark.show.plot import Curves, Dots
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
from birchbark.text.stop_words import NLTK
from birchbark_studies.comparison import (
    difference_dots,
    measure_columns,
    rank_curves,
    tuning_columns,
)
from birchbark_studies.experiments.evidence.evidence_runs import EvidenceRuns
from birchbark_studies.experiments.evidence.evidence_settings import ALONE_SUFFIX, EvidenceSettings
from birchbark_studies.first_stages import FIRST_STAGES
from birchbark_studies.recipe import Recipe
from birchbark_studies.seeds import (
    average_seeds,
    distinct,
    seeds_heading,
    seeds_layout,
    seeds_rows,
)

NOTE = (
    "Candidates: the first stage's top {depth}; documents below keep their order. Score: "
    "a · first stage{scale} + (1 − a) · {evidence}{alone}Weights: those with the best {tune} on "
    "the other folds, from a grid with step {step:g}. "
)
BEST = "(s1 + w2 · s2 + …), where s1, s2, … are the scores of the best {best} segments{segments}. "
AGGREGATED = "the {names} of the scores of all segments{segments}. "
AGGREGATED_TOO = "{names}: aggregations of all segment scores, in place of the sum. "
SCALES = {
    Scale.MAX: ", divided by its maximum,",
    Scale.MINMAX: ", scaled from 0 to 1,",
    Scale.RAW: "",
}
ALONE = "“alone”: a = 0. "
PRUNED = "As above, but without segments that contain a query term (after stemming)."
LENGTHS = "{tune} by length of the query in whitespace-separated words, without stop words."
BEST_ROWS = (
    " Each model with the number of segments that has the best {tune} on all queries of the "
    "collection, as in the thesis; this favours the models a little."
)
GAINS = "Shares of queries for which {tune} is above and below that of the first stage."
WEIGHTS = "Each w includes the factor 1 − a: it multiplies the segment's score directly."


def layout(settings: EvidenceSettings, measures: Sequence[str]) -> dict[str, tuple[Column, ...]]:
    """Map the name of each table to its columns."""
    weights = [f"w{n}" for n in range(1, settings.max_segments + 1)]
    tables = {
        "evidence": measure_columns(measures),
        "against": measure_columns(measures) if settings.reference_model else (),
        "pruned": measure_columns(measures) if settings.pruned else (),
        "lengths": columns(Style.MEASURE, *_length_classes(settings.length_bounds)),
        "gains": columns(Style.SHARE, "improved", "worse"),
        "weights": (*columns(Style.DECIMAL, "a", *weights), *tuning_columns(settings.tune)),
    }
    return {name: heads for name, heads in tables.items() if heads} | seeds_layout(
        settings.compared.seeds
    )


@dataclass(frozen=True)
class EvidenceReport:
    """Makes the tables and plots of an evidence study.

    Attributes:
        collections: The runs on each collection.
        by_model: For each collection, run → values of all measures and of the tuned measure.
        results: The same with the mean over seeds in place of models that differ in them only.
    """

    settings: EvidenceSettings
    collections: Sequence[EvidenceRuns]
    recipe: Recipe
    by_model: Sequence[Mapping[str, Results]] = field(init=False)
    results: Sequence[Mapping[str, Results]] = field(init=False)

    def __post_init__(self) -> None:
        """Evaluate all runs."""
        by_model = [self._evaluate(collection, collection.runs) for collection in self.collections]
        shown_as = self.settings.shown_as
        object.__setattr__(self, "by_model", by_model)
        object.__setattr__(self, "results", [average_seeds(r, shown_as) for r in by_model])

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures to show."""
        return self.recipe.measures

    def tables(self) -> tuple[Table, ...]:
        """Make all tables, with one group of rows per collection."""
        settings = self.settings
        heads = layout(settings, self.measures)
        contents = {
            "evidence": self._evidence(),
            "gains": self._gains(),
            "weights": (
                Heading("Tuned weights", "model, fold", WEIGHTS),
                [_weights(collection) for collection in self.collections],
            ),
        }
        if settings.compared.seeds:
            contents["seeds"] = self._seeds()
        if settings.reference_model:
            contents["against"] = self._against()
        if settings.pruned:
            contents["pruned"] = self._pruned()
        if settings.length_bounds:
            contents["lengths"] = self._lengths()
        headings = {name: heading for name, (heading, _) in contents.items()}
        return build_tables(heads, headings, {name: rows for name, (_, rows) in contents.items()})

    def plots(self, tables: Sequence[Table]) -> tuple[Dots | Curves, ...]:
        """Plot differences from the first stage and from the reference model, and rank curves.

        Rank curves are drawn only if the settings request them, of rows without the first stage
        where there are such, beside the first stage itself.
        """
        baselines = {
            "evidence": ("differences", [collection.baseline for collection in self.collections]),
            "against": ("against", [self.settings.reference_model] * len(self.collections)),
        }
        dots = tuple(
            difference_dots(
                f"{baselines[table.name][0]}-{n}",
                replace(group, name=f"{group.name}, compared with {baseline}"),
                self.measures,
                baseline,
            )
            for table in tables
            if table.name in baselines
            for n, (group, baseline) in enumerate(
                zip(table.groups, baselines[table.name][1], strict=True), 1
            )
        )
        if not self.settings.plot_ranks:
            return dots
        return *dots, *(
            rank_curves(
                f"ranks-{n}",
                f"{collection.name}: relevant document at or above this rank",
                collection.qrels,
                {
                    tag: run
                    for tag, run in collection.runs.items()
                    if tag == collection.baseline
                    or tag.endswith(ALONE_SUFFIX) == self.settings.without_first_stage
                },
            )
            for n, collection in enumerate(self.collections, 1)
        )

    def _evaluate(self, collection: EvidenceRuns, runs: Mapping[str, Run]) -> dict[str, Results]:
        """Evaluate runs in the measures to show and in the tuned measure."""
        names = tuple(dict.fromkeys((*self.measures, self.settings.tune)))
        return {row: measure(collection.qrels, run, names) for row, run in runs.items()}

    def _evidence(self) -> tuple[Heading, list[Group]]:
        note, groups = self._compared(self.results, not_compared=FIRST_STAGES)
        title = "First stage with evidence"
        return Heading(title, "ranked by", _note(self.settings) + note), groups

    def _pruned(self) -> tuple[Heading, list[Group]]:
        results = []
        for collection in self.collections:
            by_model = self._evaluate(collection, collection.pruned)
            by_run = average_seeds(by_model, self.settings.shown_as)
            rows = [self.settings.pruned_rows(name) for name in self.settings.shown]
            best = self._best_rows(rows, by_run)
            results.append({row: by_run[row] for row in (collection.baseline, *best)})
        note, groups = self._compared(results)
        title = "Without segments that contain query terms"
        return Heading(title, "ranked by", PRUNED + self._best_note + " " + note), groups

    def _compared(
        self, results: Sequence[Mapping[str, Results]], not_compared: Collection[str] = ()
    ) -> tuple[str, list[Group]]:
        """Compare runs with the first stage. Returns the table's note and groups.

        results: for each collection, row → its evaluation.
        not_compared: rows that are shown without a difference.
        """
        groups = []
        for collection, by_run in zip(self.collections, results, strict=True):
            comparison = self.recipe.comparison(collection.baseline)
            rows = comparison.rows(
                [replace(_select(r, self.measures), tag=row) for row, r in by_run.items()],
                not_compared=not_compared,
            )
            groups.append(Group(collection.name, rows))
        return comparison.note("the first stage"), groups

    def _best_rows(
        self, rows: Iterable[Sequence[str]], by_run: Mapping[str, Results]
    ) -> tuple[str, ...]:
        """Return the row of each model that has the best tuned measure. rows: of each model."""
        tune = self.settings.tune
        return tuple(max(of_model, key=lambda row: by_run[row].means[tune]) for of_model in rows)

    @property
    def _best_note(self) -> str:
        several = len(self.settings.segment_counts) > 1
        return BEST_ROWS.format(tune=self.settings.tune) if several else ""

    def _against(self) -> tuple[Heading, list[Group]]:
        """Compare the models with the reference model, with and without the first stage."""
        settings = self.settings
        suffixes = ("", ALONE_SUFFIX) if settings.without_first_stage else ("",)
        others = len(settings.shown) - 1
        family = others * len(suffixes) * len(self.measures)  # of one collection
        groups = []
        for collection, by_run in zip(self.collections, self.results, strict=True):
            rows: list[Row] = []
            rows_of = self._rows(collection)
            for suffix in suffixes:
                baseline = rows_of[settings.reference_model][-1] + suffix
                comparison = self.recipe.comparison(baseline)
                compared = [by_run[rows_of[name][-1] + suffix] for name in settings.shown]
                rows += comparison.rows(
                    [_select(result, self.measures) for result in compared], family=family
                )
            groups.append(Group(collection.name, tuple(rows)))
        heading = Heading(
            f"Compared with {settings.reference_model}",
            "ranked by",
            comparison.note(settings.reference_model),
        )
        return heading, groups

    def _lengths(self) -> tuple[Heading, list[Group]]:
        """Average the tuned measure of each model's best run per class of query length."""
        settings = self.settings
        comparison = self.recipe.comparison("", (settings.tune,))
        groups = []
        for collection, by_run in zip(self.collections, self.results, strict=True):
            query_ids = _by_length(collection, settings.length_bounds)
            tested = len(settings.shown) * sum(len(ids) > 1 for ids in query_ids)
            family = tested if self.recipe.bonferroni else 1  # of one collection
            tags = (collection.baseline, *self._best_rows(self._rows(collection).values(), by_run))
            results = [by_run[tag] for tag in tags]
            cells = [self._class_cells(results, ids, family) for ids in query_ids]  # per class
            counts = Row.of("queries", (str(len(ids)) for ids in query_ids))
            rows = [
                Row(name, tuple(of_class[number] for of_class in cells))
                for number, name in enumerate(tags)
            ]
            groups.append(Group(collection.name, (counts, *rows)))
        note = LENGTHS.format(tune=settings.tune) + self._best_note
        note = f"{note} {comparison.note('the first stage')}"
        return Heading("Query length", "ranked by", note), groups

    def _rows(self, collection: EvidenceRuns) -> dict[str, tuple[str, ...]]:
        """Return name in the tables → its rows with the first stage."""
        of, shown_as = self.settings.compared.of, self.settings.shown_as
        return {
            name: distinct(collection.rows[of(name)[0]], shown_as) for name in self.settings.shown
        }

    def _seeds(self) -> tuple[Heading, list[Group]]:
        groups = [
            seeds_rows(collection.name, by_model, self.settings.shown_as, self.measures[0])
            for collection, by_model in zip(self.collections, self.by_model, strict=True)
        ]
        return seeds_heading("ranked by", self.measures[0]), groups

    def _class_cells(
        self, results: Sequence[Results], query_ids: Sequence[str], family: int
    ) -> list[Cell]:
        """Average the tuned measure over some queries, for each of `results`.

        The first result is the baseline of the others' differences, which need two queries or more.

        family: the number of comparisons to correct for.
        """
        if not query_ids:
            return [Cell(None)] * len(results)
        name = self.settings.tune
        selected = [
            Results(result.tag, {name: {q: result.values[name][q] for q in query_ids}}, {})
            for result in results
        ]
        values = [np.array(list(result.values[name].values())) for result in selected]
        means = [float(of_result.mean()) for of_result in values]
        if len(query_ids) < 2:
            return [Cell(mean) for mean in means]
        bounds = [mean_interval(of_result, seed=self.recipe.seed) for of_result in values]
        differences = compare(
            selected[0],
            selected[1:],
            seed=self.recipe.seed,
            family=family,
            level=self.recipe.significance_level,
        )
        changes = [None, *(difference[name] for difference in differences)]
        return list(map(Cell, means, bounds, changes))

    def _gains(self) -> tuple[Heading, list[Group]]:
        """Compute the shares of queries that improve and that degrade."""
        tune = self.settings.tune
        groups = []
        for collection, by_run in zip(self.collections, self.results, strict=True):
            base = by_run[collection.baseline].values[tune]
            rows = []
            for tag in (tag for tag in by_run if tag != collection.baseline):
                values = by_run[tag].values[tune]
                improved = sum(values[q] > base[q] for q in base)
                worse = sum(values[q] < base[q] for q in base)
                rows.append(Row.of(tag, (improved / len(base), worse / len(base))))
            groups.append(Group(collection.name, tuple(rows)))
        return Heading("Queries improved", "ranked by", GAINS.format(tune=tune)), groups


def _select(result: Results, measures: Sequence[str]) -> Results:
    """Return the result with only some of its measures."""
    values = {name: result.values[name] for name in measures}
    return Results(result.tag, values, {name: result.means[name] for name in measures})


def _note(settings: EvidenceSettings) -> str:
    depths, segmenters = _exceptions(settings.depth_of), _exceptions(settings.segments_of)
    split = "; ".join(filter(None, [settings.segments, segmenters]))
    segments = f" ({split})" if settings.compared.by_name else ""  # published scores name none
    names = ", ".join(settings.aggregations)
    if settings.segment_counts:
        evidence = BEST.format(best=", ".join(map(str, settings.segment_counts)), segments=segments)
        evidence += AGGREGATED_TOO.format(names=names) if names else ""
    else:
        evidence = AGGREGATED.format(names=names, segments=segments)
    return NOTE.format(
        depth=f"{settings.depth} ({depths})" if depths else settings.depth,
        evidence=evidence,
        alone=ALONE if settings.without_first_stage else "",
        scale=SCALES[settings.scale],
        step=settings.step,
        tune=settings.tune,
    )


def _exceptions(by_collection: Mapping[str, object]) -> str:
    """List the collections whose value differs from the default."""
    return ", ".join(f"{name}: {value}" for name, value in by_collection.items())


def _length_classes(highest: Sequence[int]) -> list[str]:
    """Name the classes that end at each length in `highest`, and the last class, which is open.

    Returns an empty list if `highest` is empty.
    """
    if not highest:
        return []
    lows = [1, *(h + 1 for h in highest)]
    spans = [
        f"{low}" if low == high else f"{low}–{high}"
        for low, high in zip(lows, highest, strict=False)
    ]
    return [*spans, f"{lows[-1]} and more"]


def query_length(query: Query) -> int:
    """Return the number of words, separated by blanks, that are no stop words (NLTK's list).

    The 250 titles of Robust04 have the lengths of the birch paper, table 5.4: 11 have one word,
    90 two, 135 three and 14 four or more.
    """
    return sum(word.lower() not in NLTK for word in query.text.split())


def _by_length(collection: EvidenceRuns, highest: Sequence[int]) -> list[list[str]]:
    """Group the judged query ids by class of query length. Queries without text are left out."""
    lengths = {query.query_id: query_length(query) for query in collection.queries}
    classes: list[list[str]] = [[] for _ in range(len(highest) + 1)]
    for query_id in collection.qrels.grades:
        if query_id in lengths:
            classes[sum(lengths[query_id] > high for high in highest)].append(query_id)
    return classes


def _weights(collection: EvidenceRuns) -> Group:
    """Make a row for each run and fold. Weights that a run does not have are empty cells."""
    width = max(tuning.weights.shape[1] for tuning in collection.tunings.values())
    rows = []
    for name, tuning in collection.tunings.items():
        for fold in range(len(tuning.folds)):
            weights = tuning.chosen_weights(fold)
            missing = (None,) * (width - len(weights))
            rows.append(Row.of(f"{name}, {fold + 1}", (*weights, *missing, *tuning.means(fold))))
    return Group(collection.name, tuple(rows))
