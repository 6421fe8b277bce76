"""What do the settings of a training change? Variants of one training, measured side by side."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from birchbark.artifact import fingerprint
from birchbark.errors import InputError
from birchbark.score.model import locate
from birchbark.section import Section
from birchbark.study.bench import Bench
from birchbark.study.evidence import Evidence
from birchbark.study.outcome import Cell, Column, Curves, Group, Outcome, Row, Style, Table
from birchbark.study.recipe import Recipe
from birchbark.train.config import Training
from birchbark.train.curve import measure_curves, read_curve, smooth_losses
from birchbark.train.folder import CURVE, MODEL, TEACHERS
from birchbark.train.grid import changed
from birchbark.train.shaping import open_base
from birchbark.train.state import Progress
from birchbark.train.training import Talk, made_by, train

Lines = Sequence[Mapping[str, Any]]  # of a curve.jsonl
POINTS = 40  # of a loss curve
TRAINED = (
    "Each variant is the same training with the settings that its name tells. Steps: in all, and "
    "where the model that is measured here was written, the best on the queries kept apart."
)


@dataclass(frozen=True, slots=True)
class Trainings:
    """The choices of this kind.

    config: of the training, beside the recipe. variants: name → dotted key → value. evidence: how
    the models are measured.
    """

    config: Path
    variants: Mapping[str, Mapping[str, Any]]
    evidence: Evidence

    @classmethod
    def read(cls, section: Section) -> Trainings:
        """From the table [training] of a recipe."""
        config = section.path.parent / section.text("config")
        variants = {}
        for one in section.sections("variants"):
            name = one.text("name")
            if name in variants:
                raise InputError(f"a second variant {name!r}", where=one.where("name"))
            variants[name] = one.values("settings")
            one.end()
        if not variants:
            raise InputError("no variants", where=section.where("variants"))
        found = cls(config, variants, Evidence.of({}, section.section("evidence", {})))
        section.end()
        found.trainings()  # a fault is told before any work
        return found

    def trainings(self) -> dict[str, Training]:
        """Name → training of each variant."""
        values = Section.table(self.config)
        return {name: changed(values, some, self.config) for name, some in self.variants.items()}

    @property
    def models(self) -> tuple[str, ...]:
        """The bases."""
        return tuple(dict.fromkeys(training.base for training in self.trainings().values()))

    @property
    def files(self) -> tuple[str, ...]:
        """The pairs that are learnt from."""
        data = [data for training in self.trainings().values() for data in training.data]
        return tuple(dict.fromkeys(file for one in data for file in one.files))

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        columns = (
            Column("steps", Style.COUNT),
            Column("best at", Style.COUNT),
            Column("measure, kept apart", Style.MEASURE),
            Column("loss at the end, kept apart", Style.MEASURE),
        )
        return {"trained": columns, **self.evidence.layout(measures)}

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Train all, then measure all."""
        self.evidence.check_collections(recipe)
        work = (bench.kept or bench.scratch) / "trainings"
        ended, folders = {}, {}
        for name, training in self.trainings().items():
            bench.tell(f"training: {name}")
            folders[name] = work / _digest(training, bench)
            ended[name] = train(
                training,
                bench.root,
                folders[name],
                teachers=work / TEACHERS,
                device=bench.device,
                talk=Talk(_to(bench)),
            )
        models = {name: str(folder / MODEL) for name, folder in folders.items()}
        found = replace(self.evidence, named=models).run(recipe, bench)
        curves = {name: read_curve(folder / CURVE) for name, folder in folders.items()}
        columns = self.layout(recipe.measures)["trained"]
        table = Table(
            "trained", "Trainings", "variant", columns, (_trained(ended, curves),), TRAINED
        )
        return replace(
            found,
            tables=(table, *found.tables),
            plots=(*_plots(curves), *found.plots),
            settings={name: training.values for name, training in self.trainings().items()},
        )


def _digest(training: Training, bench: Bench) -> str:
    """Equal for what gives equal models, so that studies that share a training share its model."""
    files = [bench.root / name for data in training.data for name in data.files]
    base = open_base(locate(training.base), training.base)
    parts = [training.values, fingerprint(*files), base.fingerprint, made_by()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _to(bench: Bench) -> Any:
    return lambda text: bench.tell(f"  {text}")


def _trained(ended: Mapping[str, Progress], curves: Mapping[str, Lines]) -> Group:
    rows = []
    for name, one in ended.items():
        losses = [points[-1][1] for points in measure_curves(curves[name], "losses").values()]
        loss = sum(losses) / len(losses) if losses else None
        rows.append(Row(name, tuple(map(Cell, (one.step, one.best_step, one.best, loss)))))
    return Group("", tuple(rows))


def _plots(curves: Mapping[str, Lines]) -> tuple[Curves, ...]:
    learnt = {name: smooth_losses(lines, POINTS) for name, lines in curves.items()}
    plots = [Curves("losses", "Loss while learning", "step", "loss", learnt)]
    for what, title, axis in (
        ("losses", "Loss on queries kept apart", "loss"),
        ("values", "Measure on queries kept apart", "measure"),
    ):
        measured = {
            f"{name}, {data}" if len(found) > 1 else name: points
            for name, lines in curves.items()
            for found in [measure_curves(lines, what)]
            for data, points in found.items()
        }
        if measured:
            plots.append(Curves(f"kept-apart-{what}", title, "step", axis, measured))
    return tuple(plots)
