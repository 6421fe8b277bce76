"""How are a study's training runs shown as a table and as curves?"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from birchbark.show.plot import Curves
from birchbark.show.table import Group, Row, Style, Table, columns
from birchbark.show.training_curves import measure_curves, smooth_losses
from birchbark_studies.training_chains import TrainedModel

POINTS = 40  # maximum number of points per loss curve
COLUMNS = (
    *columns(Style.COUNT, "steps", "best step"),
    *columns(Style.MEASURE, "held-out measure", "final training loss", "final held-out loss"),
)
NOTE = (
    "Steps: the total number. Best step: that of the model evaluated here, which has the best "
    "measure on the held-out queries, or is the last one if the training keeps that. Held-out "
    "measure: the best one. Final training loss: the mean over the last fortieth of the steps. For "
    "a chain of training runs, the values are those of the last run."
)


def training_table(models: Mapping[str, TrainedModel]) -> Table:
    """Make the table of training runs, with one row per model."""
    rows = tuple(Row.of(name, _figures(model)) for name, model in models.items())
    return Table("trained", "Training", "model", COLUMNS, (Group("", rows),), NOTE)


def training_plots(models: Mapping[str, TrainedModel]) -> tuple[Curves, ...]:
    """Plot the training loss, and the loss and measure on held-out queries if there are any."""
    losses = {name: smooth_losses(model.log, POINTS) for name, model in models.items()}
    plots = [Curves("losses", "Training loss", "step", "loss", losses)]
    for kind, title, axis in (
        ("losses", "Loss on held-out queries", "loss"),
        ("values", "Measure on held-out queries", "measure"),
    ):
        series = {
            f"{name}, {dataset}" if len(curves) > 1 else name: points
            for name, model in models.items()
            for curves in [measure_curves(model.log, kind)]
            for dataset, points in curves.items()
        }
        if any(len(points) > 1 for points in series.values()):
            plots.append(Curves(f"held-out-{kind}", title, "step", axis, series))
    return tuple(plots)


def _figures(model: TrainedModel) -> tuple[float | int | None, ...]:
    final_losses = [points[-1][1] for points in measure_curves(model.log, "losses").values()]
    loss = sum(final_losses) / len(final_losses) if final_losses else None
    steps = [line["loss"] for line in model.log if "loss" in line]
    last = steps[-max(1, ceil(len(steps) / POINTS)) :]
    return (
        *(model.progress.step, model.progress.best_step, model.progress.best),
        sum(last) / len(last) if last else None,
        loss,
    )
