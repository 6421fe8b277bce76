"""What is told of first documents that models ranked anew? Areas, measures, curves, grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from birchbark.errors import InputError
from birchbark.evaluate.judged import grades_at
from birchbark.evaluate.measures import measure
from birchbark.evaluate.roc import auc
from birchbark.evaluate.significance import Difference, compare
from birchbark.records import Qrels, Run
from birchbark.section import Section
from birchbark.show.plot import Curves, Plot
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark.study.comparison import FIGURES, compared, difference_dots, measure_columns
from birchbark.study.kinds.reranking_runs import Scores, Told, places_moved, reranked

RANDOM = "random"
BINS = 20  # of a histogram of scores
BANDS = 3  # curves in a plot that can have bands
AUC_NOTE = (
    "AUC: the chance that a relevant pair of query and document has a higher score than another, "
    "all queries' pairs together: those that are judged and in the collection, and the first "
    "{deepest} of each first stage, of which those that nobody judged are not relevant. Documents "
    "without the field are left out."
)
DEPTHS_NOTE = (
    "Difference in {measure} from the first stage if so many of its first documents are ranked "
    "anew, with its 95 % interval (BCa bootstrap over queries). Random: in an order without sense."
)
TOP_NOTE = (
    "Of the first {top} documents of each query, all queries together, how many have each grade if "
    "the first {deepest} are ranked anew. Moved: how far a document is from where it was, on "
    "average, if the first {shown} are ranked anew."
)


@dataclass(frozen=True, slots=True)
class Over:
    """A number that models differ in, over which AUC is drawn. at: model → its number."""

    axis: str
    at: Mapping[str, float]

    @classmethod
    def read(cls, section: Section, models: Sequence[str]) -> Over:
        """From the table [reranking.over] of a recipe."""
        axis, table = section.text("axis"), section.section("at")
        at = {name: table.number(name) for name in models if name in table.keys}
        table.end()
        section.end()
        return cls(axis, dict(sorted(at.items(), key=lambda item: item[1])))


@dataclass(frozen=True, slots=True)
class Reranking:
    """What is told. depths: how many documents are ranked anew, of which the first is shown most.

    top: documents of each query whose grades are counted, which go up to `highest`. judged_only:
    collections of which all is told once more, of rankings that unjudged documents were taken out
    of. histograms: models whose scores are drawn. over: None if there is nothing to draw over.
    """

    depths: tuple[int, ...]
    top: int
    highest: int
    judged_only: tuple[str, ...]
    histograms: tuple[str, ...]
    over: Over | None

    @classmethod
    def read(cls, section: Section, models: Sequence[str]) -> Reranking:
        """From the table [reranking] of a recipe. models: what it calls them."""
        histograms = section.texts("histograms", ())
        if unknown := [name for name in histograms if name not in models]:
            raise InputError(
                f"no model {unknown[0]!r}", where=section.where("histograms"), wanted=str(models)
            )
        over = Over.read(section.section("over"), models) if "over" in section.keys else None
        return cls(
            section.wholes("depths", (10, 20, 50, 100), least=1),
            section.whole("top", 3, least=1),
            section.whole("highest", 1, least=1),
            section.texts("judged_only", ()),
            histograms,
            over,
        )

    @property
    def shown(self) -> int:
        """How many are ranked anew where one depth must do."""
        return self.depths[0]

    @property
    def deepest(self) -> int:
        """How many are scored."""
        return self.depths[-1]


@dataclass(frozen=True, eq=False)
class Reranked:
    """One first stage of a collection, and what models and chance say of its documents.

    scores: model and field → theirs. chance: an order without sense.
    """

    name: str
    qrels: Qrels
    first: Run
    scores: Mapping[tuple[str, str], Scores]
    chance: Scores

    @property
    def title(self) -> str:
        """What its groups of rows are called."""
        return f"{self.name}, {self.first.tag}"

    def runs(self, depth: int) -> dict[str, Run]:
        """Row → the run that it makes of the first `depth` documents."""
        named = {f"{model}, {field}": scores for (model, field), scores in self.scores.items()}
        return {
            name: reranked(self.first, scores, depth, name)
            for name, scores in {**named, RANDOM: self.chance}.items()
        }


Deltas = Mapping[str, Mapping[int, Difference]]  # row → depth → difference from the first stage


def layout(
    told: Reranking, measures: Sequence[str], fields: Sequence[str]
) -> dict[str, tuple[Column, ...]]:
    """Name → columns of the tables."""
    grades = ["unjudged", *(f"grade {n}" for n in range(told.highest + 1))]
    return {
        "auc": tuple(Column(name, Style.MEASURE) for name in fields),
        "reranked": measure_columns(measures),
        "depths": tuple(Column(str(depth), Style.MEASURE) for depth in told.depths),
        "top": (*(Column(name, Style.COUNT) for name in grades), Column("moved", Style.DECIMAL)),
    }


@dataclass(frozen=True, slots=True)
class Telling:
    """All that is told: tables and plots of one pass over what was ranked."""

    told: Reranking
    measures: Sequence[str]
    seed: int
    found: Sequence[Reranked]
    fields: Sequence[str]

    def everything(self) -> tuple[list[Table], list[Plot]]:
        """Tables, and plots, in the order in which they are to be read."""
        groups: dict[str, list[Group]] = {name: [] for name in self._heads}
        plots: list[Plot] = []
        for one in {one.name: one for one in self.found}.values():
            areas = self._areas(one)
            groups["auc"].append(Group(one.name, self._area_rows(areas)))
            plots += self._area_plots(one, areas)
        for judged_only in (False, True):
            for one in self._told_of(judged_only):
                name = one.title + (", judged documents alone" if judged_only else "")
                deltas, rows = self._ranked(one, judged_only)
                groups["reranked"].append(Group(name, rows))
                groups["depths"].append(Group(name, self._delta_rows(deltas)))
                number = len(groups["depths"])
                if len(self.told.depths) > 1:
                    plots += self._delta_plots(number, name, deltas)
                else:
                    group = Group(name, tuple(row for row in rows if row.name != RANDOM))
                    plots.append(
                        difference_dots(
                            f"differences-{number}", group, self.measures[:1], one.first.tag
                        )
                    )
        groups["top"] = [Group(one.title, self._tops(one)) for one in self.found]
        columns = layout(self.told, self.measures, self.fields)
        tables = [
            Table(name, title, stub, columns[name], tuple(groups[name]), note)
            for name, (title, stub, note) in self._heads.items()
        ]
        return tables, plots

    @property
    def _heads(self) -> dict[str, tuple[str, str, str]]:
        told = self.told
        figures = FIGURES.format(baseline="the first stage", family=self._family)
        return {
            "auc": ("Relevant pairs and others", "model", AUC_NOTE.format(deepest=told.deepest)),
            "reranked": (f"The first {told.shown} ranked anew", "ranked by", figures),
            "depths": (
                "Ever more ranked anew",
                "ranked by",
                DEPTHS_NOTE.format(measure=self.measures[0]),
            ),
            "top": (
                "Grades at the top",
                "ranked by",
                TOP_NOTE.format(top=told.top, shown=told.shown, deepest=told.deepest),
            ),
        }

    def _told_of(self, judged_only: bool) -> list[Reranked]:
        return [r for r in self.found if not judged_only or r.name in self.told.judged_only]

    @property
    def _family(self) -> int:
        """How many comparisons the table of measures makes."""
        groups = len(self.found) + len(self._told_of(judged_only=True))
        return groups * (1 + len(self.found[0].scores)) * len(self.measures)

    def _areas(self, one: Reranked) -> dict[tuple[str, str], float]:
        """Model and field → AUC."""
        found = {}
        for key, scores in one.scores.items():
            pairs = Told.of(scores, one.qrels)
            try:
                found[key] = auc(pairs.scores, pairs.relevant)
            except InputError as fault:
                raise fault.at(f"collection {one.name}, field {key[1]}") from None
        return found

    def _area_rows(self, areas: Mapping[tuple[str, str], float]) -> tuple[Row, ...]:
        models = dict.fromkeys(model for model, _ in areas)
        return tuple(
            Row(model, tuple(Cell(areas[model, field]) for field in self.fields))
            for model in models
        )

    def _area_plots(self, one: Reranked, areas: Mapping[tuple[str, str], float]) -> list[Plot]:
        """AUC over the number that models differ in; histograms of scores."""
        plots: list[Plot] = []
        number = 1 + list(dict.fromkeys(r.name for r in self.found)).index(one.name)
        if over := self.told.over:
            series = {
                field: tuple((x, areas[model, field]) for model, x in over.at.items())
                for field in self.fields
            }
            plots.append(Curves(f"over-{number}", f"{one.name}: AUC", over.axis, "AUC", series))
        for model in self.told.histograms:
            for field in self.fields:
                shares = Told.of(one.scores[model, field], one.qrels).histogram(BINS)
                name = f"scores-{number}-{len(plots)}"
                title = f"{one.name}: scores of {model}, {field}"
                plots.append(Curves(name, title, "score", "share of pairs", shares))
        return plots

    def _ranked(self, one: Reranked, judged_only: bool) -> tuple[Deltas, tuple[Row, ...]]:
        """Differences in the first measure at every depth; all measures at the one shown."""
        deltas: dict[str, dict[int, Difference]] = {}
        rows: tuple[Row, ...] = ()
        for depth in self.told.depths:
            runs = [one.first, *one.runs(depth).values()]
            names = self.measures if depth == self.told.shown else self.measures[:1]
            base, *others = (
                measure(one.qrels, run, names, judged_only=judged_only) for run in runs
            )
            for result, found in zip(others, compare(base, others, seed=self.seed), strict=True):
                deltas.setdefault(result.tag, {})[depth] = found[self.measures[0]]
            if depth == self.told.shown:
                rows = compared([base, *others], base.tag, self.seed, self._family)
        return deltas, rows

    def _delta_rows(self, deltas: Deltas) -> tuple[Row, ...]:
        return tuple(
            Row(name, tuple(Cell(d.mean, (d.low, d.high)) for d in found.values()))
            for name, found in deltas.items()
        )

    def _delta_plots(self, number: int, name: str, deltas: Deltas) -> list[Plot]:
        """Fields of one model together; of several models, a plot for each field."""
        models = list(dict.fromkeys(model for model, _ in self.found[0].scores))
        if len(models) == 1:
            sets = {"": {field: deltas[f"{models[0]}, {field}"] for field in self.fields}}
        else:
            sets = {
                field: {model: deltas[f"{model}, {field}"] for model in models}
                for field in self.fields
            }
        plots: list[Plot] = []
        for field, some in sets.items():
            few = len(some) <= BANDS  # many are told apart only where chance is not in sight
            drawn = {**some, RANDOM: deltas[RANDOM]} if few else some
            plots.append(
                Curves(
                    f"depths-{number}-{len(plots) + 1}",
                    f"{name}: {field}" if field else name,
                    "documents ranked anew",
                    f"difference in {self.measures[0]}",
                    {n: tuple((k, d.mean) for k, d in by.items()) for n, by in drawn.items()},
                    reference=0.0,
                    bands={
                        n: tuple((k, d.low, d.high) for k, d in by.items())
                        for n, by in drawn.items()
                        if few and n != RANDOM
                    }
                    or None,
                )
            )
        return plots

    def _tops(self, one: Reranked) -> tuple[Row, ...]:
        told, rows = self.told, []
        little = one.runs(told.shown)
        for name, run in {one.first.tag: one.first, **one.runs(told.deepest)}.items():
            grades = grades_at(one.qrels, run, told.top)
            counts = [grades.get(None, 0)]
            counts += [grades.get(n, 0) for n in range(told.highest + 1)]
            counts[1] += sum(n for grade, n in grades.items() if grade is not None and grade < 0)
            moved = places_moved(one.first, little[name], told.shown) if name in little else None
            rows.append(Row(name, (*map(Cell, counts), Cell(moved))))
        return tuple(rows)
