"""What must be kept so that a killed training goes on as if nothing had happened?

A folder, written whole or not at all, in the place of the one before: weights and moments as
safetensors, and what else there is to know as JSON. Nothing is pickled.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from birchbark.artifact import fingerprint, new_directory, read_json, write_json
from birchbark.errors import TrainingError
from birchbark.train.loop import Learner

WEIGHTS, MOMENTS, FACTS = "weights.safetensors", "moments.safetensors", "state.json"


@dataclass(slots=True)
class Progress:
    """How far a training has come.

    step: steps that are done. best: the highest validation value so far, at step `best_step`;
    stale: validations since. measures: what was told of that step, by data set. ended: why it is
    over, empty while it is not.
    """

    step: int = 0
    best: float | None = None
    best_step: int = 0
    stale: int = 0
    measures: dict[str, dict[str, float | int]] = field(default_factory=dict)
    ended: str = ""


def save_state(folder: Path, learner: Learner, progress: Progress) -> None:
    """Write all that changes to `folder`."""
    from safetensors.torch import save_file

    with new_directory(folder, replace=True) as scratch:
        save_file({n: w.detach().cpu() for n, w in learner.learning.items()}, scratch / WEIGHTS)
        moments = {
            f"{name}.{key}": value.cpu()
            for name, weight in learner.learning.items()
            for key, value in learner.optimiser.state[weight].items()
        }
        save_file(moments, scratch / MOMENTS)
        digest = fingerprint(scratch / WEIGHTS, scratch / MOMENTS)
        write_json(scratch / FACTS, asdict(progress) | {"sha256": digest})


def read_progress(folder: Path) -> Progress:
    """How far the state in `folder` is; a new one where there is none."""
    if not (folder / FACTS).exists():
        return Progress()
    try:
        return _read_facts(folder)[0]
    except (TypeError, ValueError) as broken:
        raise _damaged(folder, broken) from broken


def _read_facts(folder: Path) -> tuple[Progress, str]:
    """How far the state in `folder` is, and the fingerprint of its weights, empty if not stated."""
    facts = dict(read_json(folder / FACTS, "state of a training"))
    stated = facts.pop("sha256", "")
    return Progress(**facts), stated


def _damaged(folder: Path, broken: Exception) -> TrainingError:
    return TrainingError(
        f"damaged state: {broken}",
        where=str(folder),
        remedy="remove the training's folder and start again",
    )


def load_state(folder: Path, learner: Learner) -> Progress:
    """Put what `folder` holds into `learner`; TrainingError if it is damaged or another's."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        progress, stated = _read_facts(folder)
        if stated and stated != fingerprint(folder / WEIGHTS, folder / MOMENTS):
            raise ValueError("its weights are not those that were written")
        weights, moments = load_file(folder / WEIGHTS), load_file(folder / MOMENTS)
        with torch.no_grad():
            for name, weight in learner.learning.items():
                weight.copy_(weights.pop(name))
                learner.optimiser.state[weight] = {
                    key: moments.pop(f"{name}.{key}").to(
                        weight.device if weight.device.type == "cuda" or key != "step" else "cpu"
                    )
                    for key in ("step", "exp_avg", "exp_avg_sq")
                }
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as broken:
        raise _damaged(folder, broken) from broken
    return progress
