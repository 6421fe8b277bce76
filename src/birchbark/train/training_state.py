"""How is the training state saved, so that training can resume after a crash?

The state is a directory that is replaced atomically: weights and optimiser moments as safetensors,
progress as JSON. Nothing is pickled.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from birchbark.artifact import fingerprint, new_directory, read_json, write_json
from birchbark.errors import ArtifactError, TrainingError
from birchbark.train.learner import Learner

WEIGHTS, MOMENTS, PROGRESS = "weights.safetensors", "moments.safetensors", "state.json"


@dataclass(slots=True)
class Progress:
    """The progress of a training run.

    step: the number of completed steps.
    best: the best validation value; None if no model has been measured.
    best_step: the step of the model that is kept, of the best or of the last validation; 0 if there
    is none.
    stale: the number of validations since the best one.
    measures: the summary of that model's validation for each data set, by name.
    ended: why training ended; empty before the end.
    """

    step: int = 0
    best: float | None = None
    best_step: int = 0
    stale: int = 0
    measures: dict[str, dict[str, float | int]] = field(default_factory=dict)
    ended: str = ""

    @property
    def kept(self) -> float | None:
        """The validation value of the model that is kept; None if it has not been measured."""
        means = [summary["mean"] for summary in self.measures.values()]
        return sum(means) / len(means) if means else None


def save_state(folder: Path, learner: Learner, progress: Progress) -> None:
    """Write weights, moments and progress to `folder`, which replaces the previous state."""
    from safetensors.torch import save_file

    with new_directory(folder, replace=True) as scratch:
        weights = {name: weight.detach().cpu() for name, weight in learner.trainable.items()}
        save_file(weights, scratch / WEIGHTS)
        moments = {
            f"{name}.{key}": value.cpu()
            for name, weight in learner.trainable.items()
            for key, value in learner.optimiser.state[weight].items()
        }
        save_file(moments, scratch / MOMENTS)
        digest = fingerprint(scratch / WEIGHTS, scratch / MOMENTS)
        write_json(scratch / PROGRESS, asdict(progress) | {"sha256": digest})


def load_state(folder: Path, learner: Learner) -> Progress:
    """Restore the state in `folder` into `learner`, and return the progress.

    Raises TrainingError for a damaged state, or one of a different network.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        progress, digest = _read_progress_file(folder)
        if digest and digest != fingerprint(folder / WEIGHTS, folder / MOMENTS):
            raise ValueError("the weights do not match their checksum")
        weights, moments = load_file(folder / WEIGHTS), load_file(folder / MOMENTS)
        with torch.no_grad():
            for name, weight in learner.trainable.items():
                weight.copy_(weights.pop(name))
                learner.optimiser.state[weight] = {
                    key: moments.pop(f"{name}.{key}").to(
                        weight.device if weight.device.type == "cuda" or key != "step" else "cpu"
                    )
                    for key in ("step", "exp_avg", "exp_avg_sq")
                }
    except (
        *(SafetensorError, ArtifactError, OSError),
        *(KeyError, TypeError, ValueError, RuntimeError),
    ) as broken:
        raise _damaged(folder, broken) from broken
    return progress


def read_progress(folder: Path) -> Progress:
    """Return the progress saved in `folder`, or initial progress if nothing is saved.

    Raises TrainingError for a damaged file.
    """
    if not (folder / PROGRESS).exists():
        return Progress()
    try:
        return _read_progress_file(folder)[0]
    except (ArtifactError, TypeError, ValueError) as broken:
        raise _damaged(folder, broken) from broken


def _read_progress_file(folder: Path) -> tuple[Progress, str]:
    """Return the progress, and the checksum of the weights; early releases stored none: empty."""
    values = dict(read_json(folder / PROGRESS, "training state"))
    digest = values.pop("sha256", "")
    return Progress(**values), digest


def _damaged(folder: Path, broken: Exception) -> TrainingError:
    return TrainingError(
        f"damaged training state: {broken}",
        where=str(folder),
        remedy="remove the folder of the training run, and start again",
    )
