"""`birchbark train`: a relevance model from pairs of queries and texts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark.artifact import new_file, write_json
from birchbark.cli.options import DATA, FILE
from birchbark.cli.talk import Advance, progress, say
from birchbark.errors import LossError, MissingPackageError, TrainingError

if TYPE_CHECKING:
    from birchbark.show.plot import Curves
    from birchbark.train.grid import Variant
    from birchbark.train.state import Progress
    from birchbark.train.world import World

POINTS = 80  # of a loss curve


@click.command(
    epilog="Example: birchbark train training/mb.toml --output mb",
    short_help="Train a relevance model on pairs of queries and texts.",
)
@click.argument("config", type=FILE)
@click.option("--output", required=True, type=FILE, help="Folder for model, curve and state.")
@DATA
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, or cuda:1 and so on.")
@click.option("--replace", is_flag=True, help="Remove the training in the folder, and start anew.")
def command(config: Path, output: Path, data: Path | None, device: str, replace: bool) -> None:
    """Train what CONFIG (a TOML file) asks for. The model is then in OUTPUT/model.

    A training that was interrupted goes on with the same command, and ends with the same weights. A
    table [grid] in CONFIG trains every combination of the settings it lists, each in a folder of
    its own, and prints a table at the end. torchrun -m birchbark train … learns in several
    processes, each with a batch of its own.
    """
    from birchbark.collection.root import find_root
    from birchbark.train.folder import TEACHERS, remove
    from birchbark.train.grid import read_variants
    from birchbark.train.state import Progress
    from birchbark.train.world import open_world

    variants = read_variants(config)
    root = find_root(data) or Path()
    with open_world(device) as world:
        rows = []
        for variant in variants:
            folder = output / variant.name if variant.name else output
            if replace and world.first:
                remove(folder)
            world.wait()
            if variant.name and world.first:
                say(f"{variant.name}:")
            start = time.monotonic()
            try:
                ended = _train(variant, root, folder, output / TEACHERS, device, world)
            except LossError as lost:
                if not variant.name:
                    raise
                ended = Progress(ended=str(lost))
            rows.append((variant, ended, time.monotonic() - start))
            if world.first:
                _tell(folder, ended)
        if len(rows) > 1 and world.first:
            _show(rows, output)
    if failed := [variant.name for variant, ended, _ in rows if not ended.step]:
        raise TrainingError(f"{len(failed)} of {len(rows)} trainings failed", found=failed[0])


def _train(
    variant: Variant, root: Path, folder: Path, teachers: Path, device: str, world: World
) -> Progress:
    """Train one variant, with a bar that shows the loss."""
    from birchbark.train.training import Talk, train

    with progress("training") as advance:
        bar = Bar(advance)
        return train(
            variant.training,
            root,
            folder,
            teachers=teachers,
            device=device,
            world=world,
            talk=Talk(say, bar.step, bar.asked) if world.first else Talk(),
        )


class Bar:
    """A progress bar that is told what is done: of a teacher's answers, then of the steps."""

    def __init__(self, advance: Advance) -> None:
        self._advance, self._done, self._mean = advance, 0, 0.0

    def step(self, step: int, steps: int, loss: float) -> None:
        """Show `loss` as a mean that forgets slowly."""
        self._mean = loss if not self._mean else 0.98 * self._mean + 0.02 * loss
        self._show(step, steps, f"loss {self._mean:.3f}")

    def asked(self, pairs: int, of: int) -> None:
        """Show how many pairs a teacher has answered."""
        self._show(pairs, of, "teacher")

    def _show(self, done: int, total: int, label: str) -> None:
        self._advance(done - self._done, total=total, label=label)
        self._done = done


def _tell(folder: Path, ended: Progress) -> None:
    """How a training ended, and where its model is."""
    if not ended.step:
        say(f"failed: {ended.ended}")
        return
    _draw(folder)
    say(f"model: {folder / 'model'} ({ended.ended}, best at step {ended.best_step:,})")


def _draw(folder: Path) -> None:
    """Loss and measures as plots beside the numbers they come from, where matplotlib is there."""
    from birchbark.show.drawing import draw_page
    from birchbark.train.curve import read_curve

    if not (folder / "curve.jsonl").exists():
        return
    lines = read_curve(folder / "curve.jsonl")
    for name, plot in _plots(lines).items():
        try:
            page = draw_page(plot)
        except MissingPackageError as missing:  # a model is worth more than its plots
            say(f"no plot of the {name}: {missing}")
            continue
        with new_file(folder / f"{name}.svg") as out:
            out.write(page)


def _plots(lines: Sequence[Mapping[str, Any]]) -> dict[str, Curves]:
    from birchbark.show.plot import Curves
    from birchbark.train.curve import measure_curves, smooth_losses

    plots = {"loss": Curves("loss", "Loss", "step", "loss", {"": smooth_losses(lines, POINTS)})}
    if measured := measure_curves(lines):
        measure = next(line["measure"] for line in lines if "measure" in line)
        plots["measure"] = Curves("measure", "Queries kept apart", "step", measure, measured)
    return plots


def _show(rows: Sequence[tuple[Variant, Progress, float]], output: Path) -> None:
    """The grid as a table, best first, on standard output; and as grid.json."""
    keys = list(rows[0][0].settings)
    ordered = sorted(rows, key=lambda row: -(row[1].best or 0.0))
    click.echo("\t".join([*keys, "best", "step", "steps", "seconds"]))
    for variant, ended, seconds in ordered:
        best = "" if ended.best is None else f"{ended.best:.4f}"
        cells = [*variant.settings.values(), best, ended.best_step, ended.step, f"{seconds:.0f}"]
        click.echo("\t".join(map(str, cells)))
    write_json(
        output / "grid.json",
        [
            {"settings": dict(v.settings), "best": p.best, "step": p.best_step, "steps": p.step}
            for v, p, _ in rows
        ],
    )
