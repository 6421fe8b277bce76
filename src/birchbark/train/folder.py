"""What is in a training's folder, and whose is it?

`model/` is the best so far, `curve.jsonl` has loss and rate of each step and values of each
validation, `state/` is what a killed training needs to go on, `teachers/` keeps their scores, and
`training.json` says what it was begun with.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from birchbark.artifact import TEMPORARY, lock, read_json, write_json
from birchbark.errors import ArtifactError, InputError, TrainingError
from birchbark.train.world import World

MODEL, STATE, CURVE, IDENTITY = "model", "state", "curve.jsonl", "training.json"
TEACHERS, LOCK = "teachers", "lock"


@contextmanager
def opened(folder: Path, world: World) -> Iterator[None]:
    """The training's folder, held by this process; InputError if it is something else.

    What a killed process left half written is removed: it may fill the disk.
    """
    _check_folder(folder)
    if not world.first:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder / LOCK, "training"):
        for left in folder.glob(TEMPORARY + "*"):
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()
        yield


def _check_folder(folder: Path) -> None:
    """Raise InputError unless `folder` is a training's, empty, or still to be made."""
    if not folder.exists() or (folder / LOCK).exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise InputError(
            "is no training's folder", where=str(folder), remedy="choose another, or a new one"
        )


@contextmanager
def written(folder: Path) -> Iterator[None]:
    """What the disk refuses, in plain words; what `folder` held before is whole."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as refused:
        reason = getattr(refused, "strerror", None) or str(refused)
        raise TrainingError(
            f"the training cannot be written: {reason}",
            where=str(getattr(refused, "filename", None) or folder),
            remedy="make room on the disk; the same command goes on from the last checkpoint",
        ) from refused


def remove(folder: Path) -> None:
    """Remove the training in `folder`, if there is one.

    Raises InputError where `folder` holds anything else, ArtifactError while a process trains.
    """
    _check_folder(folder)
    if folder.exists():
        with lock(folder / LOCK, "training"):
            shutil.rmtree(folder)


def check_identity(path: Path, identity: Mapping[str, Any], world: World) -> None:
    """Write `identity`, or hold it against the one that is there."""
    own = json.loads(json.dumps(identity))
    if not path.exists():
        world.wait()
        if world.first:
            write_json(path, own)
        return
    world.wait()
    there = read_json(path, "training")
    if not isinstance(there, dict):
        raise ArtifactError("damaged training", where=str(path))
    if changed := [key for key in own if own[key] != there.get(key)]:
        raise InputError(
            "the folder holds a training that was begun otherwise",
            where=str(path.parent),
            found=f"other {' and '.join(changed)}",
            remedy="choose another folder, or ask to replace it",
        )
