"""How are re-ranked runs shown: AUC, measures by depth, and grades at the top?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from birchbark import InputError, Qrels, Run, measure
from birchbark.evaluate.grades import grades_at
from birchbark.evaluate.significance import Difference, compare
from birchbark.records import Ranking
from birchbark.show.plot import Curves, Plot
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
from birchbark_studies.comparison import difference_dots, measure_columns
from birchbark_studies.experiments.reranking.reranking_runs import (
    ScoredPairs,
    Scores,
    mean_rank_change,
    rerank_top,
)
from birchbark_studies.experiments.reranking.reranking_settings import (
    AFTER,
    BEFORE,
    JUDGED_PAIRS,
    RerankingSettings,
)
from birchbark_studies.recipe import Recipe
from birchbark_studies.roc import auc_with_interval
from birchbark_studies.seeds import average_seeds, seeds_heading, seeds_layout, seeds_rows

RANDOM = "random"
BINS = 20  # bins per histogram of scores
MAX_BANDS = 3  # plots with more curves show no intervals
AUC_NOTE = (
    "AUC: the probability that a relevant query–document pair has a higher score than a "
    "non-relevant pair, over the pairs of all queries: judged documents in the collection{others}. "
    "Documents without the field are left out. In brackets: 95 % intervals (BCa bootstrap over "
    "queries)."
)
UNJUDGED_PAIRS = (
    ", and the top {deepest} of each first stage, which count as not relevant if unjudged"
)
JUDGED_NOTE = {
    AFTER: " Judged documents only: unjudged documents are removed after re-ranking.",
    BEFORE: " Judged documents only: unjudged documents are removed before re-ranking.",
}
DEPTHS_NOTE = (
    "Difference in {measure} from the first stage when this many of its top documents are "
    "re-ranked, with 95 % intervals (BCa bootstrap over queries). Random: re-ranked in random "
    "order."
)
TOP_NOTE = (
    "Number of documents per grade among the top {tops} for each query, summed over all queries, "
    "when the top {deepest} are re-ranked. Moved: mean absolute change in rank when the top "
    "{shown} are re-ranked."
)
FIRST_SEED_NOTE = " Of several seeds, only the first is shown."

Pair = tuple[str, str]  # model and field
Area = tuple[float, tuple[float, float] | None]  # AUC and its interval


@dataclass(frozen=True, slots=True)
class Reranked:
    """How the re-ranked runs of a first stage compare with it.

    Attributes:
        differences: Row → depth → difference from the first stage in the first measure, at the
            depths of the settings.
        means: Row → depth → the mean of this difference, at these depths and at each one between,
            as far as the rankings go.
        rows, seeds: The rows of the table with all measures at the first depth, and those of the
            table of seeds.
    """

    differences: Mapping[str, Mapping[int, Difference]]
    means: Mapping[str, Mapping[int, float]]
    rows: tuple[Row, ...]
    seeds: Group


@dataclass(frozen=True, eq=False)
class ScoredFirstStage:
    """A first-stage run on a collection, with the scores of its documents.

    Attributes:
        scores: (model, field) → scores.
        random: Random scores.
    """

    name: str
    qrels: Qrels
    first: Run
    scores: Mapping[Pair, Scores]
    random: Scores

    @property
    def title(self) -> str:
        """The name of its groups of rows."""
        return f"{self.name}, {self.first.tag}"

    def without_unjudged(self) -> ScoredFirstStage:
        """Return the first stage without unjudged documents."""
        rankings = {}
        for query_id, ranking in self.first.rankings.items():
            judged = self.qrels.grades.get(query_id, {})
            kept = [n for n, doc_id in enumerate(ranking.doc_ids) if doc_id in judged]
            rankings[query_id] = Ranking.of(
                [ranking.doc_ids[n] for n in kept], ranking.scores[kept]
            )
        return replace(self, first=Run(rankings, self.first.tag))

    def runs(self, depth: int) -> dict[str, Run]:
        """Return row → the run with the top `depth` documents re-ranked."""
        by_row = {row_name(*pair): scores for pair, scores in self.scores.items()}
        return {
            name: rerank_top(self.first, scores, depth, name)
            for name, scores in {**by_row, RANDOM: self.random}.items()
        }


def row_name(model: str, field: str) -> str:
    """Name the row of the runs that are re-ranked by a model's scores of a field."""
    return f"{model}, {field}"


def layout(
    settings: RerankingSettings, measures: Sequence[str], fields: Sequence[str]
) -> dict[str, tuple[Column, ...]]:
    """Map the name of each table to its columns."""
    grades = ["unjudged", *(f"grade {n}" for n in range(settings.highest + 1))]
    return {
        "auc": columns(Style.MEASURE, *fields),
        "reranked": measure_columns(measures),
        "depths": columns(Style.MEASURE, *map(str, settings.depths)),
        "top": (*columns(Style.COUNT, *grades), Column("moved", Style.DECIMAL)),
    } | seeds_layout(settings.compared.seeds)


@dataclass(frozen=True, slots=True)
class RerankingReport:
    """Makes the tables and plots of a study of re-ranking."""

    settings: RerankingSettings
    recipe: Recipe
    stages: Sequence[ScoredFirstStage]
    fields: Sequence[str]

    def tables_and_plots(self) -> tuple[tuple[Table, ...], list[Plot]]:
        """Return all tables and plots in reading order."""
        groups: dict[str, list[Group]] = {name: [] for name in self._headings}
        plots: list[Plot] = []
        for stage in {stage.name: stage for stage in self.stages}.values():  # scores are shared
            areas = self._areas(stage)
            groups["auc"].append(Group(stage.name, self._area_rows(areas)))
            plots += self._area_plots(stage, areas)
        for judged_only in (False, True):
            for stage in self._shown(judged_only):
                name = stage.title + (", judged documents only" if judged_only else "")
                reranked = self._reranked(stage, judged_only)
                if self.settings.compared.seeds:
                    groups["seeds"].append(replace(reranked.seeds, name=name))
                groups["reranked"].append(Group(name, reranked.rows))
                groups["depths"].append(Group(name, _delta_rows(reranked)))
                number = len(groups["depths"])
                if len(self.settings.depths) > 1:
                    plots += self._delta_plots(number, name, reranked)
                else:
                    group = Group(name, tuple(r for r in reranked.rows if r.name != RANDOM))
                    plots.append(
                        difference_dots(
                            f"differences-{number}", group, self.measures[:1], stage.first.tag
                        )
                    )
        several = len(self.settings.tops) > 1
        groups["top"] = [
            Group(stage.title + (f", top {top}" if several else ""), self._top_rows(stage, top))
            for stage in self.stages
            for top in self.settings.tops
        ]
        table_layout = layout(self.settings, self.measures, self.fields)
        return build_tables(table_layout, self._headings, groups), plots

    @property
    def _headings(self) -> dict[str, Heading]:
        settings = self.settings
        shown, deepest = settings.shown, settings.deepest
        reranked = self.recipe.comparison("").note("the first stage")
        depths = DEPTHS_NOTE.format(measure=self.measures[0])
        if settings.judged_only:
            depths += JUDGED_NOTE[settings.removed]
            reranked += JUDGED_NOTE[settings.removed]
        others = (
            "" if settings.auc_pairs == JUDGED_PAIRS else UNJUDGED_PAIRS.format(deepest=deepest)
        )
        tops = ", ".join(map(str, settings.tops))
        top = TOP_NOTE.format(tops=tops, shown=shown, deepest=deepest)
        top += FIRST_SEED_NOTE if settings.compared.seeds else ""
        seeds = seeds_heading("ranked by", self.measures[0])
        return {
            **({"seeds": seeds} if settings.compared.seeds else {}),
            "auc": Heading("Separation of relevant pairs", "model", AUC_NOTE.format(others=others)),
            "reranked": Heading(f"Top {shown} re-ranked", "ranked by", reranked),
            "depths": Heading("Re-ranking depth", "ranked by", depths),
            "top": Heading("Grades of the top documents", "ranked by", top),
        }

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures to show; the first is also shown at each depth."""
        return self.recipe.measures

    def _shown(self, judged_only: bool) -> list[ScoredFirstStage]:
        """Return all first stages, or the stages to show again for judged documents only."""
        return [
            stage
            for stage in self.stages
            if not judged_only or stage.name in self.settings.judged_only
        ]

    def _groups_of(self, collection: str) -> int:
        """Return how many groups of rows a table of re-ranked runs has of one collection."""
        shown = [stage for judged_only in (False, True) for stage in self._shown(judged_only)]
        return sum(stage.name == collection for stage in shown)

    def _areas(self, stage: ScoredFirstStage) -> dict[Pair, Area]:
        """Return (model, field) → AUC with its interval, the mean over the seeds of a model."""
        areas = {}
        compared = self.settings.compared
        for name, field in product(compared.shown, self.fields):
            pairs = [self._pairs(stage, model, field) for model in compared.of(name)]
            try:
                areas[name, field] = auc_with_interval(
                    np.array([of_model.scores for of_model in pairs]),
                    pairs[0].relevant,
                    pairs[0].queries,
                    seed=self.recipe.seed,
                )
            except InputError as fault:
                raise fault.at(f"collection {stage.name}, field {field}") from None
        return areas

    def _pairs(self, stage: ScoredFirstStage, model: str, field: str) -> ScoredPairs:
        judged_only = self.settings.auc_pairs == JUDGED_PAIRS
        return ScoredPairs.of(stage.scores[model, field], stage.qrels, judged_only=judged_only)

    def _area_rows(self, areas: Mapping[Pair, Area]) -> tuple[Row, ...]:
        models = dict.fromkeys(model for model, _ in areas)
        return tuple(
            Row(model, tuple(Cell(*areas[model, field]) for field in self.fields))
            for model in models
        )

    def _area_plots(self, stage: ScoredFirstStage, areas: Mapping[Pair, Area]) -> list[Plot]:
        """Plot AUC over the number in which the models differ, and histograms of scores."""
        plots: list[Plot] = []
        number = 1 + list(dict.fromkeys(r.name for r in self.stages)).index(stage.name)
        if over := self.settings.over:
            series = {
                field: tuple((x, areas[model, field][0]) for model, x in over.at.items())
                for field in self.fields
            }
            plots.append(Curves(f"over-{number}", f"{stage.name}: AUC", over.axis, "AUC", series))
        for shown in self.settings.histograms:
            model = self.settings.compared.of(shown)[0]
            for field in self.fields:
                shares = self._pairs(stage, model, field).histogram(BINS)
                name = f"scores-{number}-{len(plots)}"
                title = f"{stage.name}: scores of {model}, {field}"
                plots.append(Curves(name, title, "score", "share of pairs", shares))
        return plots

    def _reranked(self, stage: ScoredFirstStage, judged_only: bool) -> Reranked:
        """Compare the re-ranked runs with the first stage."""
        if judged_only and self.settings.removed == BEFORE:
            stage = stage.without_unjudged()
        first = self.measures[0]
        deltas: dict[str, dict[int, Difference]] = {}
        means: dict[str, dict[int, float]] = {}
        rows: tuple[Row, ...] = ()
        longest = max(len(ranking.doc_ids) for ranking in stage.first.rankings.values())
        every = range(self.settings.shown, min(longest, self.settings.deepest) + 1)
        for depth in sorted({*self.settings.depths, *every}):
            runs = [stage.first, *stage.runs(depth).values()]
            shown = depth == self.settings.shown
            names = self.measures if shown else self.measures[:1]
            baseline, *by_model = (
                measure(stage.qrels, run, names, judged_only=judged_only) for run in runs
            )
            results = {result.tag: result for result in by_model}
            others = list(average_seeds(results, self._shown_as).values())
            for result in others:
                change = result.means[first] - baseline.means[first]
                means.setdefault(result.tag, {})[depth] = change
            if depth in self.settings.depths:
                differences = compare(baseline, others, seed=self.recipe.seed)
                for result, difference in zip(others, differences, strict=True):
                    deltas.setdefault(result.tag, {})[depth] = difference[first]
            if shown:
                family = len(others) * len(names) * self._groups_of(stage.name)
                comparison = self.recipe.comparison(baseline.tag)
                rows = comparison.rows([baseline, *others], family=family)
                seeds = seeds_rows(stage.title, results, self._shown_as, first)
        return Reranked(deltas, means, rows, seeds)

    @property
    def _shown_as(self) -> dict[str, str]:
        """Map the row of each model that has other seeds to the row of all of them."""
        return {
            row_name(model, field): row_name(variant, field)
            for model, variant in self.settings.compared.variant_of.items()
            for field in self.fields
        }

    def _delta_plots(self, number: int, name: str, reranked: Reranked) -> list[Plot]:
        """Plot differences over depth: one plot for a single model, else one per field."""
        models = self.settings.compared.shown
        if len(models) == 1:
            sets = {"": {field: row_name(models[0], field) for field in self.fields}}
        else:
            sets = {f: {model: row_name(model, f) for model in models} for f in self.fields}
        return [
            _depth_curves(
                f"depths-{number}-{n}",
                f"{name}: {field}" if field else name,
                self.measures[0],
                curves,
                reranked,
            )
            for n, (field, curves) in enumerate(sets.items(), 1)
        ]

    def _top_rows(self, stage: ScoredFirstStage, top: int) -> tuple[Row, ...]:
        """Count the grades among the `top` best documents of each run; negative ones count as 0."""
        settings, rows = self.settings, []
        shown_runs = stage.runs(settings.shown)
        later_seeds = {
            row_name(model, field)
            for models in settings.compared.by_variant.values()
            for model in models[1:]
            for field in self.fields
        }
        for name, run in {stage.first.tag: stage.first, **stage.runs(settings.deepest)}.items():
            if name in later_seeds:
                continue
            grades = grades_at(stage.qrels, run, top)
            counts = [grades.get(None, 0)]
            counts += [grades.get(n, 0) for n in range(settings.highest + 1)]
            counts[1] += sum(n for grade, n in grades.items() if grade is not None and grade < 0)
            shown = shown_runs.get(name)
            moved = mean_rank_change(stage.first, shown, settings.shown) if shown else None
            rows.append(Row.of(name, (*counts, moved)))
        return tuple(rows)


def _delta_rows(reranked: Reranked) -> tuple[Row, ...]:
    return tuple(
        Row(name, tuple(Cell(d.mean, (d.low, d.high)) for d in by_depth.values()))
        for name, by_depth in reranked.differences.items()
    )


def _depth_curves(
    name: str, title: str, measure_name: str, rows: Mapping[str, str], reranked: Reranked
) -> Curves:
    """Plot differences over every depth. rows: curve → row.

    A plot of few curves also shows the random order, and intervals at the depths of the table.
    """
    few = len(rows) <= MAX_BANDS  # the random order would compress a plot of many curves
    drawn = {**rows, RANDOM: RANDOM} if few else rows
    bands = {
        curve: tuple((depth, d.low, d.high) for depth, d in reranked.differences[row].items())
        for curve, row in rows.items()
        if few
    }
    return Curves(
        name,
        title,
        "documents re-ranked",
        f"difference in {measure_name}",
        {curve: tuple(reranked.means[row].items()) for curve, row in drawn.items()},
        reference=0.0,
        bands=bands or None,
    )
