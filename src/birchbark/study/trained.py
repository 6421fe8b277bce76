"""Which models does a study train itself? One training after the other, each from what was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from birchbark.collection.irds import fingerprint, place
from birchbark.errors import InputError
from birchbark.score.checkpoint import Checkpoint
from birchbark.score.model import locate
from birchbark.section import Section
from birchbark.study.bench import Bench
from birchbark.study.outcome import Cell, Column, Curves, Group, Row, Style, Table
from birchbark.train.config import Training, read_training
from birchbark.train.curve import measure_curves, read_curve, smooth_losses
from birchbark.train.folder import CURVE, MODEL, STATE, TEACHERS
from birchbark.train.shaping import open_base
from birchbark.train.state import Progress, read_progress
from birchbark.train.training import Talk, check_device, made_by, train

Chain = tuple[Training, ...]  # each begins with the model of the one before
Lines = Sequence[Mapping[str, Any]]  # of a curve.jsonl
SUFFIX = ".toml"
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


@dataclass(frozen=True, slots=True)
class Trained:
    """A model that a study made. chain: how. progress, curve: of the last training."""

    model: Path
    chain: Chain
    progress: Progress
    curve: Lines


def read_models(section: Section) -> dict[str, str | Chain]:
    """Name → a model as `--model` takes it, or the trainings that make it.

    Trainings are one path of a TOML file or several, from the folder of the recipe.
    """
    found: dict[str, str | Chain] = {}
    for name in section.keys:
        words = section.text_or_texts(name)
        if not any(word.endswith(SUFFIX) for word in words):
            if len(words) > 1:
                raise InputError(
                    "several models", where=section.where(name), wanted="one, or trainings"
                )
            found[name] = words[0]
            continue
        paths = [section.path.parent / word for word in words]
        found[name] = tuple(read_training(Section.table(path), path) for path in paths)
    return found


def bases(chains: Iterable[Chain]) -> tuple[str, ...]:
    """The models that must be there before anything is trained."""
    return tuple(dict.fromkeys(chain[0].base for chain in chains))


def learnt_files(chains: Iterable[Chain]) -> tuple[str, ...]:
    """Paths below the data root of all pairs that are learnt from."""
    data = [data for chain in chains for training in chain for data in training.data]
    return tuple(dict.fromkeys(file for one in data for file in one.files))


def train_all(chains: Mapping[str, Chain], bench: Bench) -> dict[str, Trained]:
    """Name → model. What has been trained before in the bench's kept folder is not trained again.

    Trainings of equal settings, data, base and versions share a folder, whichever study asks.
    """
    if chains:
        check_device(bench.device)
    work = (bench.kept or bench.scratch) / "trainings"
    made = {}
    for name, chain in chains.items():
        done: list[Training] = []
        folder = work
        for one in chain:
            training = _after(one, folder / MODEL, done) if done else one
            done.append(training)
            folder = work / _digest(training, bench)
            progress = read_progress(folder / STATE)
            if not (progress.ended and (folder / MODEL).exists()):
                title = f", {training.title}" if len(chain) > 1 else ""
                bench.tell(f"training: {name}{title}")
                progress = train(
                    *(training, bench.root, folder),
                    teachers=work / TEACHERS,
                    device=bench.device,
                    talk=Talk(partial(_indented, bench)),
                )
        made[name] = Trained(folder / MODEL, tuple(done), progress, read_curve(folder / CURVE))
    return made


def _indented(bench: Bench, text: str) -> None:
    bench.tell(f"  {text}")


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
        if measured:
            plots.append(Curves(f"kept-apart-{what}", title, "step", axis, measured))
    return tuple(plots)


def settings_of(made: Mapping[str, Trained]) -> dict[str, Any]:
    """Name → settings of the training, or of each in turn: for the manifest."""
    return {
        name: [training.values for training in one.chain]
        if len(one.chain) > 1
        else one.chain[0].values
        for name, one in made.items()
    }


def _after(training: Training, base: Path, done: Sequence[Training]) -> Training:
    """`training`, from the model of those before it, which its settings name by their titles."""
    titles = " → ".join([done[0].values["base"], *(one.title for one in done)])
    return replace(training, base=str(base), values={**training.values, "base": titles})


def _digest(training: Training, bench: Bench) -> str:
    """Equal for what gives equal models."""
    files = [place(bench.root, name) for data in training.data for name in data.files]
    teachers = [data.teacher.model for data in training.data if data.teacher]
    parts = [
        training.values,
        [fingerprint(file) for file in files],
        open_base(locate(training.base), training.base).fingerprint,
        [Checkpoint.open(locate(name), name).fingerprint for name in teachers],
        bench.device,
        made_by(),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _figures(one: Trained) -> tuple[float | int | None, ...]:
    losses = [points[-1][1] for points in measure_curves(one.curve, "losses").values()]
    loss = sum(losses) / len(losses) if losses else None
    return one.progress.step, one.progress.best_step, one.progress.best, loss
