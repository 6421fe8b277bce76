"""Which models does a study train itself? One training after the other, each from what was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from birchbark.checkpoint.named import open_named
from birchbark.collection.irds import fingerprint, place
from birchbark.errors import InputError
from birchbark.section import Section
from birchbark.study.bench import Bench
from birchbark.train.config import Training, read_training
from birchbark.train.curve import read_curve
from birchbark.train.folder import CURVE, MODEL, STATE, TEACHERS
from birchbark.train.state import Progress, read_progress
from birchbark.train.training import Talk, check_device, made_by, train

Chain = tuple[Training, ...]  # each begins with the model of the one before
Lines = Sequence[Mapping[str, Any]]  # of a curve.jsonl
SUFFIX = ".toml"


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
    """The models that must be there before anything is trained: first bases, and teachers."""
    named = [(chain[0].base, *(t for one in chain for t in one.teachers)) for chain in chains]
    return tuple(dict.fromkeys(model for some in named for model in some))


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
    parts = [
        training.values,
        [fingerprint(file) for file in files],
        open_named(training.base).fingerprint,
        [open_named(name).fingerprint for name in training.teachers],
        bench.device,
        made_by(),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
