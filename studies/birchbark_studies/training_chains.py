"""How does a study train its models, each by one or more successive training runs?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from birchbark import InputError
from birchbark.checkpoint.locate import open_named
from birchbark.collection.data_files import data_fingerprint, data_path
from birchbark.section import Section
from birchbark.train.config import TrainingConfig
from birchbark.train.distributed import ProcessGroup
from birchbark.train.read_config import read_training
from birchbark.train.setting_grid import read_with_settings
from birchbark.train.training import check_device, train, without_auto
from birchbark.train.training_folder import LOG, MODEL, STATE
from birchbark.train.training_log import read_log
from birchbark.train.training_run import ProgressReporter, training_versions
from birchbark.train.training_state import Progress, read_progress
from birchbark_studies.workspace import Workspace

Chain = tuple[TrainingConfig, ...]  # each training run starts from the previous run's model
SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model trained by a study.

    Attributes:
        model: The directory of the checkpoint.
        progress, log: The progress and log of the last training run.
    """

    model: Path
    progress: Progress
    log: Sequence[Mapping[str, Any]]


def read_models(section: Section) -> dict[str, str | Chain]:
    """Read a table of models: name → model name or directory, or the training runs that make it.

    Training runs are given by one or more paths of TOML files, relative to the recipe.
    """
    models: dict[str, str | Chain] = {}
    for name in section.keys:
        values = section.text_or_texts(name)
        if not any(value.endswith(SUFFIX) for value in values):
            if len(values) > 1:
                raise InputError(
                    "several models",
                    where=section.where(name),
                    wanted="one model, or TOML files of training runs",
                )
            models[name] = values[0]
            continue
        paths = [section.path.parent / value for value in values]
        models[name] = tuple(read_training(Section.table(path), path) for path in paths)
    return models


def with_seeds(name: str, chain: Chain, seeds: Sequence[int]) -> dict[str, Chain]:
    """Return name → chain, one for each seed of the last training run; the chain for no seeds."""
    if not seeds:
        return {name: chain}
    *earlier, last = chain
    return {
        f"{name}, seed {seed}": (
            *earlier,
            read_with_settings(last.values, {"seed": seed}, last.path),
        )
        for seed in seeds
    }


def without_fold(chain: Chain, fold: int) -> Chain:
    """Return the chain whose training runs that hold out a fold hold out this one (from 1)."""
    return tuple(
        read_with_settings(training.values, {"held_out.fold": fold}, training.path)
        if training.held_out
        else training
        for training in chain
    )


def base_models(chains: Iterable[Chain]) -> tuple[str, ...]:
    """Return the models that must exist before training: each chain's first base, and teachers."""
    models: list[str] = []
    for chain in chains:
        models.append(chain[0].base)
        models += [teacher for training in chain for teacher in training.teachers]
    return tuple(dict.fromkeys(models))


def training_files(chains: Iterable[Chain]) -> tuple[str, ...]:
    """Return the paths, relative to the data root, of all data that the chains train on."""
    trainings = [training for chain in chains for training in chain]
    return tuple(dict.fromkeys(file for training in trainings for file in training.files))


def independent(chains: Mapping[str, Chain]) -> list[dict[str, Chain]]:
    """Divide chains into groups that can be trained at the same time.

    Chains with the same first training run are in one group, as they share its folder.
    """
    groups: dict[str, dict[str, Chain]] = {}
    for name, chain in chains.items():
        key = json.dumps(chain[0].values, sort_keys=True)
        groups.setdefault(key, {})[name] = chain
    return list(groups.values())


def train_all(chains: Mapping[str, Chain], workspace: Workspace) -> dict[str, TrainedModel]:
    """Return name → trained model; training runs in the workspace's cache are not repeated.

    Training runs with equal settings, data, base model, teachers, device and versions share a
    folder of the cache, also across studies.
    """
    if chains:
        check_device(workspace.device)
    trainings = workspace.cache_or_scratch / "trainings"
    models = {}
    for name, chain in chains.items():
        folder = trainings
        for number, step in enumerate(chain, 1):
            base = step.base if number == 1 else str(folder / MODEL)
            training = replace(step, base=base, values=_settings(chain[:number]))
            folder = trainings / _digest(training, workspace)
            with workspace.alone(folder):
                progress = read_progress(folder / STATE)
                if not (progress.ended and (folder / MODEL).exists()):
                    title = f", {training.title}" if len(chain) > 1 else ""
                    workspace.progress(f"training: {name}{title}")
                    progress = train(
                        training,
                        workspace.root,
                        folder,
                        shared=trainings,
                        processes=ProcessGroup(device=workspace.device),
                        reporter=ProgressReporter(partial(_indented, workspace)),
                    )
        models[name] = TrainedModel(folder / MODEL, progress, read_log(folder / LOG))
    return models


def _indented(workspace: Workspace, text: str) -> None:
    workspace.progress(f"  {text}")


def chain_settings(chain: Chain) -> Any:
    """Return the settings of a training run, or a list of them if there are several."""
    settings = [_settings(chain[:number]) for number in range(1, len(chain) + 1)]
    return settings if len(settings) > 1 else settings[0]


def _settings(chain: Chain) -> Mapping[str, Any]:
    """Return the settings of the last training run.

    They describe its base by the base of the first and the titles of those in between.
    """
    *earlier, last = chain
    titles = [chain[0].values["base"], *(training.title for training in earlier)]
    return {**last.values, "base": " → ".join(titles)} if earlier else last.values


def _digest(training: TrainingConfig, workspace: Workspace) -> str:
    """Hash everything that determines the trained model."""
    training = without_auto(training, workspace.device)
    files = [data_path(workspace.root, name) for name in training.files]
    parts = [
        training.values,
        [data_fingerprint(file) for file in files],
        open_named(training.base).outputs_fingerprint,
        [open_named(name).outputs_fingerprint for name in training.teachers],
        workspace.device,
        training_versions(),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
