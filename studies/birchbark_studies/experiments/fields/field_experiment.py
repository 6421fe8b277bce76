"""Which fields should BM25 search, and how weighted and matched? Cord paper, tables 4.1, 4.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from birchbark.section import Section
from birchbark.show.plot import Curves
from birchbark.show.table import Column, Group, Heading, Row, Style, build_tables, columns
from birchbark_studies.comparison import Comparison, match_rows, measure_columns, tuning_columns
from birchbark_studies.experiments.fields.field_runs import SCORED, FieldRuns, rank_by_fields
from birchbark_studies.experiments.fields.field_settings import FieldSettings
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe import Experiment, Recipe
from birchbark_studies.workspace import Workspace

PRESENCE = (
    Column("documents", Style.COUNT),
    *columns(Style.SHARE, "of all documents", "of judged documents"),
)
PRESENCE_NOTE = (
    "Documents that have the field, as a share of all documents and of the documents judged for "
    "any query."
)
COUNTED_NOTE = (
    "Documents with each value, as a share of all documents and of the documents judged for any "
    "query; of a date, its year. The {most} most frequent values of each field are shown."
)
JUDGMENTS_NOTE = (
    "Documents of each query that are judged, are relevant, and have the highest grade of "
    "the collection."
)
MOST_VALUES = 20
SCORES_NOTE = (
    f"Mean of the BM25 scores of each query's best {SCORED} documents. A weight counts "
    "for as much as its product with this."
)
FOLDS_NOTE = (
    "{folds} folds of queries, drawn with seed {seed}{given}. Each fold is ranked with the weights "
    "that have the best {tune} on the other folds, among all weights that sum to 1 on a grid with "
    "step {step:g}."
)
MATCH_NOTE = (
    "Match ratio: the share of all documents that are candidates, averaged over queries. "
    "Candidates contain any query term (or) or all query terms (and), in any of the searched "
    "fields."
)


@dataclass(frozen=True, slots=True)
class FieldExperiment(Experiment):
    """A study of fields, with its settings."""

    collection_keys = frozenset({"folds"})
    settings: FieldSettings

    @classmethod
    def read(cls, section: Section) -> FieldExperiment:
        """Read the table [fields] of a recipe."""
        return cls(FieldSettings.read(section))

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of each table to its columns."""
        weights = [f"weight of {name}" for name in self.settings.names]
        tables = {"presence": PRESENCE}
        if self.settings.counted:
            tables["values"] = PRESENCE
        if self.settings.judgments:
            tables["judgments"] = columns(
                Style.COUNT, "judged", "relevant", "with the highest grade"
            )
        return tables | {
            "fields": measure_columns(measures),
            "scores": columns(Style.DECIMAL, "mean score"),
            "weights": (
                Column("queries", Style.COUNT),
                *columns(Style.DECIMAL, *weights),
                *tuning_columns(self.settings.tune),
            ),
            "match": columns(Style.SHARE, "match ratio") + measure_columns(measures),
        }

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Rank by each field, tune the weights, rank with them and with each match, evaluate."""
        settings = self.settings
        collections = [workspace.open(files) for files in recipe.collections]
        for collection in collections:
            collection.folds_or_random(settings.folds, recipe.seed)  # told before any work
        ranked = [rank_by_fields(settings, recipe, workspace, c) for c in collections]
        comparison = recipe.comparison(settings.baseline)
        compared = [
            comparison.group(result.name, result.qrels, result.compared.values())
            for result in ranked
        ]
        groups = {
            "presence": [_presence(result) for result in ranked],
            "values": [_values(result, name) for result in ranked for name in settings.counted],
            "judgments": [_judgments(result) for result in ranked],
            "fields": compared,
            "scores": [
                Group(r.name, tuple(Row.of(name, (mean,)) for name, mean in r.scores.items()))
                for r in ranked
            ],
            "weights": [_weights(result) for result in ranked],
            "match": [
                Group(result.name, match_rows(result.matched, result.qrels, recipe.measures))
                for result in ranked
            ],
        }
        tables = build_tables(
            self.layout(recipe.measures), self._headings(recipe, comparison), groups
        )
        curves = [
            curve
            for n, result in enumerate(ranked, 1)
            for curve in self._curve(f"weight-{n}", result)
        ]
        runs = {
            f"{result.name}.{name}": run
            for result in ranked
            for name, run in [
                *result.compared.items(),
                *((name, run) for name, (_, run) in result.matched.items()),
            ]
        }
        return Outcome(tables, (*comparison.plots(compared), *curves), runs)

    def _headings(self, recipe: Recipe, comparison: Comparison) -> Mapping[str, Heading]:
        settings = self.settings
        folds = FOLDS_NOTE.format(
            folds=settings.folds,
            seed=recipe.seed,
            given=", unless they are given" if any(c.folds for c in recipe.collections) else "",
            tune=settings.tune,
            step=settings.step,
        )
        return {
            "presence": Heading("Documents with each field", "field", PRESENCE_NOTE),
            "values": Heading("Values", "value", COUNTED_NOTE.format(most=MOST_VALUES)),
            "judgments": Heading("Judgments", "query", JUDGMENTS_NOTE),
            "fields": Heading("BM25 by field", "ranked by", comparison.note()),
            "scores": Heading("Scores", "field", SCORES_NOTE),
            "weights": Heading("Tuned weights", "fold", folds),
            "match": Heading("Candidates", "ranked by, match", MATCH_NOTE),
        }

    def _curve(self, name: str, ranked: FieldRuns) -> list[Curves]:
        """Plot the measure over the first field's weight. Empty unless there are two fields."""
        settings, tuning = self.settings, ranked.tuning
        if len(settings.names) != 2:
            return []
        weights, values = tuning.weights[:, 0], tuning.values.mean(axis=1)  # (weightings,)
        points = tuple(zip(weights.tolist(), values.tolist(), strict=True))
        marks = sorted({float(weights[weighting]) for weighting in tuning.chosen})
        first = next(iter(settings.names))
        title = f"{ranked.name}: all queries; dashed lines mark the weights chosen for the folds"
        return [
            Curves(name, title, f"weight of {first}", settings.tune, {"": points}, tuple(marks))
        ]


def _presence(ranked: FieldRuns) -> Group:
    rows = (
        Row.of(name, (count, count / ranked.documents, judged / max(1, ranked.judged)))
        for name, (count, judged) in ranked.presence.items()
    )
    return Group(ranked.name, tuple(rows))


def _values(ranked: FieldRuns, name: str) -> Group:
    """Make a row for each of the most frequent values of a field."""
    values = sorted(ranked.counted[name].items(), key=lambda item: (-item[1][0], item[0]))
    rows = (
        Row.of(value or "none", (count, count / ranked.documents, judged / max(1, ranked.judged)))
        for value, (count, judged) in values[:MOST_VALUES]
    )
    more = f", {MOST_VALUES} of {len(values):,} values" if len(values) > MOST_VALUES else ""
    return Group(f"{ranked.name}, {name}{more}", tuple(rows))


def _judgments(ranked: FieldRuns) -> Group:
    """Count each query's judged documents: all, those that are relevant, and the best ones."""
    highest = max(g for grades in ranked.qrels.grades.values() for g in grades.values())
    rows = []
    for query_id, grades in ranked.qrels.grades.items():
        relevant = sum(grade >= ranked.qrels.relevant for grade in grades.values())
        best = sum(grade == highest for grade in grades.values())
        rows.append(Row.of(query_id, (len(grades), relevant, best)))
    return Group(ranked.name, tuple(rows))


def _weights(ranked: FieldRuns) -> Group:
    """Make a row for each fold."""
    tuning = ranked.tuning
    rows = (
        Row.of(
            str(n + 1),
            (
                len(set(fold).intersection(tuning.query_ids)),
                *tuning.chosen_weights(n),
                *tuning.means(n),
            ),
        )
        for n, fold in enumerate(tuning.folds)
    )
    return Group(ranked.name, tuple(rows))
