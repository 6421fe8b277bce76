"""What does the folder of a training run contain, and does it belong to this run?

- `model/`: the best model so far
- `curve.jsonl`: the log with the loss and learning rate of each step, and of each validation
- `state/`: the training state, from which the run resumes
- `teachers/`: stored teacher scores
- `mined/`: the negatives that the steps since the last search use
- `tokens/`: the token ids of pairs; they are computed again if this is deleted
- `training.json`: the inputs that identify the run
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from birchbark.artifact import TEMPORARY, lock, read_json, write_json
from birchbark.checkpoint.locate import locate
from birchbark.errors import ArtifactError, InputError, TrainingError
from birchbark.train.distributed import ProcessGroup

MODEL = "model"
STATE = "state"
LOG = "curve.jsonl"
IDENTITY = "training.json"
TEACHERS, TOKENS, MINED, LOCK = "teachers", "tokens", "mined", "lock"


@contextmanager
def open_folder(folder: Path, processes: ProcessGroup) -> Iterator[None]:
    """Create and lock the folder, and remove temporary files of a killed process.

    Only the main process does this. Raises InputError if `folder` is not the folder of a training
    run, and ArtifactError if another process holds the lock.
    """
    _check_folder(folder)
    if not processes.is_main:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder / LOCK, "training"):
        for leftover in folder.glob(TEMPORARY + "*"):
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink()
        yield


def _check_folder(folder: Path) -> None:
    """Raise InputError unless `folder` belongs to a training run, is empty or does not exist."""
    if not folder.exists() or (folder / LOCK).exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise InputError(
            "not the folder of a training run",
            where=str(folder),
            remedy="choose another folder",
        )


@contextmanager
def explained_write_errors(folder: Path) -> Iterator[None]:
    """Raise TrainingError if a file cannot be written. Earlier files stay intact."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TrainingError(
            f"cannot write the training run: {reason}",
            where=str(getattr(error, "filename", None) or folder),
            remedy="free disk space, or make the folder writable; the same command resumes from "
            "the last saved state",
        ) from error


def remove_training(folder: Path, processes: ProcessGroup) -> None:
    """Remove what a training run has left in its folder, which is open; see `open_folder`.

    Teacher scores and token ids stay, since every training run finds its own among them.
    """
    processes.barrier()
    for path in folder.iterdir() if processes.is_main else ():
        if path.name not in (LOCK, TEACHERS, TOKENS):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    processes.barrier()


def check_outside(folder: Path, models: Iterable[str]) -> None:
    """Raise InputError if one of the `models` is in the folder of a training run to be replaced."""
    for model in models:
        if locate(model).resolve().is_relative_to(folder.resolve()):
            raise InputError(
                "the training run needs a model that it replaces",
                where=model,
                remedy="choose another folder, or move the model",
            )


def check_identity(path: Path, identity: Mapping[str, Any], processes: ProcessGroup) -> None:
    """Write `identity` to `path`, or check that it equals the stored one.

    Raises InputError if the two differ, and ArtifactError for a damaged file.
    """
    ours = json.loads(json.dumps(identity))
    if not path.exists():
        processes.barrier()
        if processes.is_main:
            write_json(path, ours)
        return
    processes.barrier()
    stored = read_json(path, "training run")
    if not isinstance(stored, dict):
        raise ArtifactError("damaged training run", where=str(path))
    if changed := [key for key in ours if ours[key] != stored.get(key)]:
        raise InputError(
            "the folder holds a training run with other inputs",
            where=str(path.parent),
            found=f"different {' and '.join(changed)}",
            remedy="choose another folder, or replace the training run",
        )
