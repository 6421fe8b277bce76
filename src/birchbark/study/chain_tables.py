"""How do the trainings of a study read as a table, and as curves?"""

from __future__ import annotations

from collections.abc import Mapping

from birchbark.show.plot import Curves
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark.study.chains import Trained
from birchbark.train.curve import measure_curves, smooth_losses

POINTS = 40  # of a loss curve
COLUMNS = (
    Column("steps", Style.COUNT),
    Column("best at", Style.COUNT),
    Column("measure, kept apart", Style.MEASURE),
    Column("loss at the end, kept apart", Style.MEASURE),
)
NOTE = (
    "Steps: in all, and where the model that is measured here was written, the best on the queries "
    "kept apart; of trainings in turn, those of the last."
)


def trained_table(made: Mapping[str, Trained]) -> Table:
    """A row for each model."""
    rows = tuple(Row(name, tuple(map(Cell, _figures(one)))) for name, one in made.items())
    return Table("trained", "Trainings", "model", COLUMNS, (Group("", rows),), NOTE)


def trained_plots(made: Mapping[str, Trained]) -> tuple[Curves, ...]:
    """Loss while learning; loss and measure on queries kept apart."""
    learnt = {name: smooth_losses(one.curve, POINTS) for name, one in made.items()}
    plots = [Curves("losses", "Loss while learning", "step", "loss", learnt)]
    for what, title, axis in (
        ("losses", "Loss on queries kept apart", "loss"),
        ("values", "Measure on queries kept apart", "measure"),
    ):
        measured = {
            f"{name}, {data}" if len(found) > 1 else name: points
            for name, one in made.items()
            for found in [measure_curves(one.curve, what)]
            for data, points in found.items()
        }
        if any(len(points) > 1 for points in measured.values()):
            plots.append(Curves(f"kept-apart-{what}", title, "step", axis, measured))
    return tuple(plots)


def _figures(one: Trained) -> tuple[float | int | None, ...]:
    losses = [points[-1][1] for points in measure_curves(one.curve, "losses").values()]
    loss = sum(losses) / len(losses) if losses else None
    return one.progress.step, one.progress.best_step, one.progress.best, loss
