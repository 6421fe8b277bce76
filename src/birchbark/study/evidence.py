"""What does the evidence of sentences add to the first stage? Models side by side, weights tuned.

Equation 3.2 of the birch paper: a · s_doc + (1 − a) · Σ w_i · s_i over a document's best segments,
w_1 = 1; a and the other w_i are those with the best value on the other folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.evaluate.ranks import Float64s, parse_rank_measure
from birchbark.evaluate.tune import steps_of
from birchbark.score.checkpoint import Checkpoint
from birchbark.score.model import locate
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.segment.named import parse_segmenter
from birchbark.study.bench import Bench
from birchbark.study.comparison import FIGURES, compared, difference_dots, measure_columns
from birchbark.study.evidence_runs import FIRST_STAGES, EvidenceRuns, rank_by_evidence
from birchbark.study.outcome import Cell, Column, Group, Outcome, Row, Style, Table
from birchbark.study.recipe import Recipe

NOTE = (
    "Candidates: the first stage's best {depth}, those below keep their order. Score: a · first "
    "stage, divided by its highest, + (1 − a) · (s1 + w2 · s2 + …), s the scores of the document's "
    "best {best} of its segments ({segments}). “alone” has a = 0. Weights: of a grid in steps of "
    "{step:g} those with the best {tune} on the other {others} folds. "
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The choices of this kind.

    named: what people call them → models. rm3: whether the first stage is expanded. segments: of
    documents, and segments_of: collection → its own. depth: so many candidates, and depth_of alike.
    best: n, segments of a document that count. step: of the grid. precision: of the arithmetic.
    """

    named: Mapping[str, str]
    rm3: bool
    segments: str
    segments_of: Mapping[str, str]
    depth: int
    depth_of: Mapping[str, int]
    best: int
    tune: str
    step: float
    folds: int
    precision: Precision

    @classmethod
    def read(cls, section: Section) -> Evidence:
        """From the table [evidence] of a recipe."""
        models = section.section("models")
        named = {name: models.text(name) for name in models.keys}
        if not named:
            raise InputError("no models", where=section.where("models"))
        return cls.of(named, section)

    @classmethod
    def of(cls, named: Mapping[str, str], section: Section) -> Evidence:
        """As `read`, with the models that the caller knows."""
        own, depths = section.section("segments_of", {}), section.section("depth_of", {})
        found = cls(
            named,
            section.truth("rm3", True),
            section.text("segments", "sentences"),
            {name: own.text(name) for name in own.keys},
            section.whole("depth", 100, least=1),
            {name: depths.whole(name, least=1) for name in depths.keys},
            section.whole("best", 3, least=1),
            section.text("tune", "AP"),
            section.number("step", 0.1),
            section.whole("folds", 5, least=2),
            _precision(section),
        )
        try:
            for words in (found.segments, *found.segments_of.values()):
                parse_segmenter(words)
            parse_rank_measure(found.tune)
            steps_of(found.step)
            _check_names(named)
        except InputError as fault:
            raise fault.at(section.where()) from None
        section.end()
        return found

    @property
    def models(self) -> tuple[str, ...]:
        """All that it scores with."""
        return tuple(self.named.values())

    @property
    def grid(self) -> Float64s:
        """Weights (settings, 1 + best): of the first stage and of the best segments."""
        steps = steps_of(self.step)
        levels = np.arange(steps + 1) / steps
        return np.array(
            [
                (a, *((1 - a) * w for w in (1.0, *others)))
                for a in levels
                for others in product(levels, repeat=self.best - 1)
            ]
        )

    @property
    def files(self) -> tuple[str, ...]:
        """None besides the collections."""
        return ()

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        weights = [Column(f"w{n}", Style.DECIMAL) for n in range(1, self.best + 1)]
        tuned = [Column(f"{self.tune}, {w}", Style.MEASURE) for w in ("other folds", "this")]
        return {
            "evidence": measure_columns(measures),
            "weights": (Column("a", Style.DECIMAL), *weights, *tuned),
        }

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Rank, score, tune, measure."""
        self.check_collections(recipe)
        made = [rank_by_evidence(self, recipe, bench, bench.open(c)) for c in recipe.collections]
        family = sum(len(one.runs) - 1 for one in made) * len(recipe.measures)
        groups: dict[str, list[Group]] = {"evidence": [], "weights": []}
        for one in made:
            results = [measure(one.qrels, run, recipe.measures) for run in one.runs.values()]
            rows = compared(results, one.baseline, recipe.seed, family)
            groups["evidence"].append(Group(one.name, rows))
            groups["weights"].append(_weights(one))
        dots = tuple(
            difference_dots(f"differences-{n}", group, recipe.measures, one.baseline)
            for n, (group, one) in enumerate(zip(groups["evidence"], made, strict=True), 1)
        )
        runs = {f"{one.name}.{name}": run for one in made for name, run in one.runs.items()}
        models = {name: Checkpoint.open(locate(m)).fingerprint for name, m in self.named.items()}
        return Outcome(self._tables(recipe, groups, family), dots, runs, models)

    def check_collections(self, recipe: Recipe) -> None:
        """Raise InputError where something is chosen for a collection that is not there."""
        known = [collection.name for collection in recipe.collections]
        for name in (*self.segments_of, *self.depth_of):
            if name not in known:
                raise InputError(
                    "segments_of or depth_of names a collection that the recipe has not",
                    where=str(recipe.path),
                    wanted=f"one of {', '.join(known)}",
                    found=name,
                )

    def _tables(
        self, recipe: Recipe, groups: Mapping[str, list[Group]], family: int
    ) -> tuple[Table, ...]:
        note = NOTE.format(
            depth=_listed(self.depth, self.depth_of),
            best=self.best,
            segments=_listed(self.segments, self.segments_of),
            step=self.step,
            tune=self.tune,
            others=self.folds - 1,
        )
        figures = FIGURES.format(baseline="the first stage", family=family)
        columns = self.layout(recipe.measures)
        return (
            Table(
                *("evidence", "First stage and evidence", "ranked by"),
                columns["evidence"],
                tuple(groups["evidence"]),
                note + figures,
            ),
            Table(
                *("weights", "Tuned weights", "model, fold"),
                columns["weights"],
                tuple(groups["weights"]),
                "w is given as its part of 1 − a: what a segment's score is multiplied with.",
            ),
        )


def _listed(usual: object, own: Mapping[str, object]) -> str:
    """What holds for all collections, and for some."""
    return ", ".join([str(usual), *(f"of {name} {value}" for name, value in own.items())])


def _check_names(named: Iterable[str]) -> None:
    """Raise InputError for a model that is called like another row."""
    names = list(named)
    rows = [*FIRST_STAGES, *(row for name in names for row in (name, f"{name}, alone"))]
    if repeated := [row for row in dict.fromkeys(rows) if rows.count(row) > 1]:
        raise InputError(f"two rows would be called {repeated[0]!r}", remedy="rename the model")


def _precision(section: Section) -> Precision:
    name = section.text("precision", "fp32")
    if name not in (known := [precision.value for precision in Precision]):
        remedy = f"one of {', '.join(known)}"
        raise InputError("unknown precision", where=section.where("precision"), remedy=remedy)
    return Precision(name)


def _weights(one: EvidenceRuns) -> Group:
    rows = [
        Row(f"{name}, {fold + 1}", tuple(map(Cell, figures)))
        for name, tuning in one.tunings.items()
        for fold in range(len(tuning.folds))
        for figures in [(*tuning.chosen_weights(fold), *tuning.means(fold))]
    ]
    return Group(one.name, tuple(rows))
