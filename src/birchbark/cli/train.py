"""`birchbark train`: how is a relevance model trained?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark import defaults
from birchbark.artifact import new_file, write_json
from birchbark.cli.console import Advance, notify, progress
from birchbark.cli.options import PATH, data_option, option
from birchbark.errors import LossError, MissingPackageError, TrainingError

if TYPE_CHECKING:
    from birchbark.show.plot import Curves
    from birchbark.train.distributed import ProcessGroup
    from birchbark.train.setting_grid import Variant
    from birchbark.train.training_state import Progress

POINTS = 80  # number of points in a loss curve
SMOOTHING = 0.98  # weight of earlier losses in the moving average beside the progress bar


@click.command(
    epilog="Example: birchbark train training/mb-quick.toml --output mb",
    short_help="Train, distil or adapt a model.",
)
@click.argument("config", type=PATH)
@option("--output", required=True, type=PATH, help="Folder for the model, loss curve and state.")
@data_option
@option("--device", default=defaults.DEVICE, help="cpu, cuda, or cuda:N for one GPU.")
@option("--replace", is_flag=True, help="Replace a training run in OUTPUT, if there is one.")
def command(config: Path, output: Path, data: Path | None, device: str, replace: bool) -> None:
    """Train the model that CONFIG (a TOML file) describes, and write it to OUTPUT/model.

    A configuration may state its kind, and is refused if it is of another: ranking, distillation
    (with teachers), adaptation (predicts masked tokens of a collection's texts) or relemb (predicts
    masked tokens of queries from relevant passages, and the other way round).

    Repeat the command to resume an interrupted training run; the final weights are the same. If
    CONFIG has a table [grid], a model is trained for each combination of its settings in a separate
    folder, and a table of results is printed at the end. To train in several processes, each with
    its own batches, use torchrun -m birchbark train …
    """
    from birchbark.collection.data_files import find_data_root
    from birchbark.train.distributed import open_process_group
    from birchbark.train.setting_grid import read_variants
    from birchbark.train.training import check_device, check_models
    from birchbark.train.training_state import Progress

    variants = read_variants(config)
    root = find_data_root(data) or Path()
    with open_process_group(device) as processes:
        check_device(device)
        for variant in variants:
            check_models(variant.training)
        results = []
        for variant in variants:
            folder = output / variant.name
            if variant.name and processes.is_main:
                notify(f"{variant.name}:")
            start = time.monotonic()
            try:
                result = _train(variant, root, output, replace, processes)
            except LossError as error:
                if not variant.name:
                    raise
                result = Progress(ended=str(error))
            results.append((variant, result, time.monotonic() - start))
            if processes.is_main:
                _report(folder, result)
                if len(variants) > 1:
                    _write_grid(results, output)
        if len(results) > 1 and processes.is_main:
            _print_grid(results)
    if failed := [variant.name for variant, result, _ in results if not result.step]:
        raise TrainingError(
            f"{len(failed)} of {len(results)} training runs failed", found=failed[0]
        )


def _train(
    variant: Variant, root: Path, output: Path, replace: bool, processes: ProcessGroup
) -> Progress:
    """Train one variant, and show the loss beside a progress bar."""
    from birchbark.train.training import train
    from birchbark.train.training_run import ProgressReporter

    with progress("training") as advance:
        bar = TrainingBar(advance)
        reporter = ProgressReporter()
        if processes.is_main:
            reporter = ProgressReporter(notify, bar.show_step, bar.show_teacher)
        return train(
            variant.training,
            root,
            output / variant.name,
            shared=output,
            replace=replace,
            processes=processes,
            reporter=reporter,
        )


class TrainingBar:
    """Advances a progress bar, first for the teachers' scores, then for the training steps."""

    def __init__(self, advance: Advance) -> None:
        self._advance, self._done, self._mean_loss = advance, 0, 0.0

    def show_step(self, step: int, steps: int, loss: float) -> None:
        """Show the number of finished steps, and the exponential moving average of the loss."""
        old = self._mean_loss or loss
        self._mean_loss = SMOOTHING * old + (1 - SMOOTHING) * loss
        self._show(step, steps, f"loss {self._mean_loss:.3f}")

    def show_teacher(self, pairs: int, total: int) -> None:
        """Show how many pairs a teacher has scored."""
        self._show(pairs, total, "teacher")

    def _show(self, done: int, total: int, label: str) -> None:
        self._advance(done - self._done, total=total, label=label)
        self._done = done


def _report(folder: Path, result: Progress) -> None:
    """Print how a training run ended and where its model is, and draw its curves."""
    if not result.step:
        notify(f"failed: {result.ended}")
        return
    _draw_curves(folder)
    notify(f"model: {folder / 'model'}, of step {result.best_step:,} ({result.ended})")


def _draw_curves(folder: Path) -> None:
    """Draw the curves of loss and measures in `folder`, if matplotlib is installed."""
    from birchbark.show.draw_plot import draw_page
    from birchbark.train.training_log import read_log

    if not (folder / "curve.jsonl").exists():
        return
    lines = read_log(folder / "curve.jsonl")
    for name, plot in _plots(lines).items():
        try:
            page = draw_page(plot)
        except MissingPackageError as missing:  # the model is complete without its plots
            notify(f"no plot of the {name}: {missing}")
            continue
        with new_file(folder / f"{name}.svg") as out:
            out.write(page)


def _plots(lines: Sequence[Mapping[str, Any]]) -> dict[str, Curves]:
    from birchbark.show.plot import Curves
    from birchbark.show.training_curves import measure_curves, smooth_losses

    plots = {"loss": Curves("loss", "Loss", "step", "loss", {"": smooth_losses(lines, POINTS)})}
    if measured := measure_curves(lines):
        measure = next(line["measure"] for line in lines if "measure" in line)
        plots["measure"] = Curves("measure", "Held-out queries", "step", measure, measured)
    return plots


def _write_grid(results: Sequence[tuple[Variant, Progress, float]], output: Path) -> None:
    """Write the results of the variants so far to grid.json."""
    rows = [
        {"settings": dict(v.settings), "best": p.kept, "step": p.best_step, "steps": p.step}
        for v, p, _ in results
    ]
    write_json(output / "grid.json", rows)


def _print_grid(results: Sequence[tuple[Variant, Progress, float]]) -> None:
    """Print the results of the grid as a table, best variant first."""
    keys = list(results[0][0].settings)
    sign = 1 if results[0][0].training.validation.lowest_is_best else -1

    def position(result: tuple[Variant, Progress, float]) -> tuple[bool, float]:
        best = result[1].kept
        return best is None, sign * (best or 0.0)

    ordered = sorted(results, key=position)
    click.echo("\t".join([*keys, "best", "step", "steps", "seconds"]))
    for variant, result, seconds in ordered:
        best = "" if result.kept is None else f"{result.kept:.4f}"
        cells = [*variant.settings.values(), best, result.best_step, result.step, f"{seconds:.0f}"]
        click.echo("\t".join(map(str, cells)))
