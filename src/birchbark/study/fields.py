"""Which fields should BM25 search, by which weights and match? The cord paper's tables 4.1, 4.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.evaluate.ranks import parse_rank_measure
from birchbark.evaluate.tune import simplex
from birchbark.retrieve.match import Match, parse_match
from birchbark.section import Section
from birchbark.study.bench import Bench
from birchbark.study.comparison import FIGURES, compared, difference_dots, measure_columns
from birchbark.study.field_runs import TUNED, FieldRuns, rank_by_fields
from birchbark.study.outcome import Cell, Column, Curves, Group, Outcome, Row, Style, Table
from birchbark.study.recipe import Recipe
from birchbark.text.analyzer import NORMALISERS

RATIO = Column("match ratio", Style.SHARE)


@dataclass(frozen=True, slots=True)
class Fields:
    """The choices of this kind.

    names: indexed field → the documents' fields it joins. joint: name of one field of them all.
    tune: the measure that weights are chosen by. step: of the grid of weights, which sum to 1.
    folds: their number. match: which candidates are tried. baseline: the row compared with.
    """

    names: Mapping[str, tuple[str, ...]]
    joint: str
    analyzer: str
    tune: str
    step: float
    folds: int
    match: Mapping[str, Match]
    baseline: str

    @classmethod
    def read(cls, section: Section) -> Fields:
        """From the table [fields] of a recipe."""
        table = section.section("names")
        names = {name: table.texts(name) for name in table.keys}
        joint = section.text("joint", "contents")
        found = cls(
            names,
            joint,
            section.text("analyzer", "english"),
            section.text("tune"),
            section.number("step", 0.1),
            section.whole("folds", 5, least=2),
            {name: _match(section, name) for name in section.texts("match", ("or", "and"))},
            section.text("baseline", joint),
        )
        found._check(section)
        section.end()
        return found

    def _check(self, section: Section) -> None:
        """Raise InputError now for what would go wrong after the work has begun."""
        if len(self.names) < 2 or len(set(self.rows)) < len(self.rows):
            raise InputError(
                "wrong fields",
                where=section.where("names"),
                wanted=f"two or more, none of them called like another row: {', '.join(self.rows)}",
            )
        for key, value, known in (
            ("analyzer", self.analyzer, tuple(NORMALISERS)),
            ("baseline", self.baseline, self.rows),
        ):
            if value not in known:
                raise InputError(
                    f"unknown {key} {value!r}",
                    where=section.where(key),
                    remedy=f"one of {', '.join(known)}",
                )
        try:
            parse_rank_measure(self.tune)
            simplex(len(self.names), self.step)
        except InputError as fault:
            raise fault.at(section.where("step" if "step" in fault.what else "tune")) from None

    @property
    def rows(self) -> tuple[str, ...]:
        """What is compared: single fields, their sum, their tuned sum, and the joint field."""
        return (*self.names, self.added, TUNED, self.joint)

    @property
    def added(self) -> str:
        """What the sum with weight 1 each is called."""
        return " + ".join(self.names)

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
        weights = [Column(f"weight of {name}", Style.DECIMAL) for name in self.names]
        tuned = [
            Column(f"{self.tune}, {where}", Style.MEASURE) for where in ("other folds", "this")
        ]
        return {
            "fields": measure_columns(measures),
            "weights": (Column("queries", Style.COUNT), *weights, *tuned),
            "match": (RATIO, *measure_columns(measures)),
        }

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Rank by each field, tune, mix, match, measure."""
        made = [rank_by_fields(self, recipe, bench, bench.open(c)) for c in recipe.collections]
        family = len(made) * (len(self.rows) - 1) * len(recipe.measures)
        groups: dict[str, list[Group]] = {"fields": [], "weights": [], "match": []}
        for one in made:
            results = [measure(one.qrels, run, recipe.measures) for run in one.compared.values()]
            rows = compared(results, self.baseline, recipe.seed, family)
            groups["fields"].append(Group(one.name, rows))
            groups["weights"].append(_weights(one))
            groups["match"].append(_matches(one, recipe.measures))
        dots = [
            difference_dots(f"differences-{n}", group, recipe.measures, self.baseline)
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
        folds = (
            f"{self.folds} folds of queries, drawn with seed {recipe.seed}. Each fold is ranked by "
            f"the weights, of those that sum to 1 in steps of {self.step:g}, that have the best "
            f"{self.tune} on the other folds."
        )
        match = (
            "Match ratio: share of all documents that are candidates, mean over queries; or: they "
            "hold any term of the query, and: all of them, in whichever searched field."
        )
        heads = {
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
                heads[name][2].format(baseline=self.baseline, family=family),
            )
            for name, columns in self.layout(recipe.measures).items()
        )

    def _curve(self, name: str, one: FieldRuns) -> list[Curves]:
        """The measure against the first weight, where there are two: one weight says all."""
        if len(self.names) != 2:
            return []
        x, y = one.tuning.weights[:, 0], one.tuning.values.mean(axis=1)
        marks = sorted({float(x[setting]) for setting in one.tuning.chosen})
        points = tuple(zip(x.tolist(), y.tolist(), strict=True))
        first = next(iter(self.names))
        title = f"{one.name}: all queries; lines mark the weights that folds chose"
        return [Curves(name, title, f"weight of {first}", self.tune, {"": points}, tuple(marks))]


def _match(section: Section, word: str) -> Match:
    try:
        return parse_match(word)
    except InputError as fault:
        raise fault.at(section.where("match")) from None


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
