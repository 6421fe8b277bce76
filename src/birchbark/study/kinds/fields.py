"""Which fields should BM25 search, by which weights and match? The cord paper's tables 4.1, 4.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from birchbark.evaluate.measures import measure
from birchbark.section import Section
from birchbark.show.plot import Curves
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark.study.bench import Bench
from birchbark.study.comparison import FIGURES, compared, difference_dots, measure_columns
from birchbark.study.kinds.field_choices import FieldChoices
from birchbark.study.kinds.field_runs import FieldRuns, rank_by_fields
from birchbark.study.outcome import Outcome
from birchbark.study.recipe import Recipe

RATIO = Column("match ratio", Style.SHARE)
PRESENCE = (
    Column("documents", Style.COUNT),
    Column("of all", Style.SHARE),
    Column("of the judged", Style.SHARE),
)
PRESENT = (
    "Documents that have the field, their share of all documents, and of those that are judged for "
    "any query."
)


@dataclass(frozen=True, slots=True)
class FieldStudy:
    """A study of this kind, by its choices."""

    choices: FieldChoices

    @classmethod
    def read(cls, section: Section) -> FieldStudy:
        """From the table [fields] of a recipe."""
        return cls(FieldChoices.read(section))

    @property
    def models(self) -> tuple[str, ...]:
        """None: this kind needs no checkpoint."""
        return ()

    @property
    def files(self) -> tuple[str, ...]:
        """None besides the collections."""
        return ()

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        choices = self.choices
        weights = [Column(f"weight of {name}", Style.DECIMAL) for name in choices.names]
        tuned = [
            Column(f"{choices.tune}, {where}", Style.MEASURE) for where in ("other folds", "this")
        ]
        return {
            "presence": PRESENCE,
            "fields": measure_columns(measures),
            "weights": (Column("queries", Style.COUNT), *weights, *tuned),
            "match": (RATIO, *measure_columns(measures)),
        }

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Rank by each field, tune, mix, match, measure."""
        choices = self.choices
        made = [rank_by_fields(choices, recipe, bench, bench.open(c)) for c in recipe.collections]
        family = len(made) * (len(choices.rows) - 1) * len(recipe.measures)
        names = self.layout(recipe.measures)
        groups: dict[str, list[Group]] = {name: [] for name in names}
        for one in made:
            results = [measure(one.qrels, run, recipe.measures) for run in one.compared.values()]
            rows = compared(results, choices.baseline, recipe.seed, family)
            groups["presence"].append(_presence(one))
            groups["fields"].append(Group(one.name, rows))
            groups["weights"].append(_weights(one))
            groups["match"].append(_matches(one, recipe.measures))
        dots = [
            difference_dots(f"differences-{n}", group, recipe.measures, choices.baseline)
            for n, group in enumerate(groups["fields"], 1)
        ]
        curves = [c for n, one in enumerate(made, 1) for c in self._curve(f"weight-{n}", one)]
        runs = {
            f"{one.name}.{name}": run
            for one in made
            for name, run in {**one.compared, **one.matched}.items()
        }
        return Outcome(self._tables(recipe, groups, family), (*dots, *curves), runs)

    def _tables(
        self, recipe: Recipe, groups: Mapping[str, list[Group]], family: int
    ) -> tuple[Table, ...]:
        choices = self.choices
        folds = (
            f"{choices.folds} folds of queries, drawn with seed {recipe.seed}. Each fold is ranked "
            f"by the weights, of those that sum to 1 in steps of {choices.step:g}, that have the "
            f"best {choices.tune} on the other folds."
        )
        match = (
            "Match ratio: share of all documents that are candidates, mean over queries; or: they "
            "hold any term of the query, and: all of them, in whichever searched field."
        )
        heads = {
            "presence": ("Which documents have which fields", "field", PRESENT),
            "fields": ("BM25 by field", "ranked by", FIGURES),
            "weights": ("Tuned weights", "fold", folds),
            "match": ("Candidates", "ranked by, match", match),
        }
        return tuple(
            Table(
                name,
                heads[name][0],
                heads[name][1],
                columns,
                tuple(groups[name]),
                heads[name][2].format(baseline=choices.baseline, family=family),
            )
            for name, columns in self.layout(recipe.measures).items()
        )

    def _curve(self, name: str, one: FieldRuns) -> list[Curves]:
        """The measure against the first weight, where there are two: one weight says all."""
        choices = self.choices
        if len(choices.names) != 2:
            return []
        x, y = one.tuning.weights[:, 0], one.tuning.values.mean(axis=1)
        marks = sorted({float(x[setting]) for setting in one.tuning.chosen})
        points = tuple(zip(x.tolist(), y.tolist(), strict=True))
        first = next(iter(choices.names))
        title = f"{one.name}: all queries; lines mark the weights that folds chose"
        return [Curves(name, title, f"weight of {first}", choices.tune, {"": points}, tuple(marks))]


def _presence(one: FieldRuns) -> Group:
    rows = (
        Row(name, (Cell(there), Cell(there / one.documents), Cell(judged / max(1, one.judged))))
        for name, (there, judged) in one.presence.items()
    )
    return Group(one.name, tuple(rows))


def _weights(one: FieldRuns) -> Group:
    rows = []
    for number, fold in enumerate(one.tuning.folds):
        figures = (len(fold), *one.tuning.chosen_weights(number), *one.tuning.means(number))
        rows.append(Row(str(number + 1), tuple(map(Cell, figures))))
    return Group(one.name, tuple(rows))


def _matches(one: FieldRuns, measures: tuple[str, ...]) -> Group:
    rows = []
    for name, run in one.matched.items():
        means = measure(one.qrels, run, measures).means
        rows.append(Row(name, (Cell(one.ratios[name]), *map(Cell, means.values()))))
    return Group(one.name, tuple(rows))
