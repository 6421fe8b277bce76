"""Does a resumed training run end with the same bytes as an uninterrupted one?"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_trainings import alone, one_thread, prepare, settings, toml

from birchbark.errors import TrainingError
from birchbark.train import training_run
from birchbark.train.config import TrainingConfig
from birchbark.train.training import train
from birchbark.train.training_folder import LOG
from birchbark.train.training_log import TrainingLog, read_log
from birchbark.train.training_run import ProgressReporter
from birchbark.train.validation import ValidationResult
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed")

SETTINGS = {
    "schedule__steps": 14,
    "schedule__batch": 4,
    "schedule__save_every": 2,
    "validation": {"every": 3, "patience": 99},
    "data__validation": 0.4,
    "model__dropout": 0.2,
    "lists": {"each": "positive", "texts": 3},
    "objective": {"kind": "ranknet"},
}
NEW_LAYERS = ("classifier.weight", "match.embeddings", "match.hidden")
MINING = {"mining": {"every": 4, "start": 3, "depth": 9}}
KILLED = """
import os, signal, sys
from pathlib import Path
from tiny_trainings import prepare
from birchbark.train import training
from birchbark.train import training_run as module
from birchbark.train.training_log import TrainingLog

folder, changes, event, step, out = sys.argv[1:]
folder, changes, step = Path(folder), eval(changes), int(step)
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)

class KilledLog(TrainingLog):
    def add(self, **values):
        super().add(**values)
        if values["step"] == step and event == ("values" if "values" in values else "loss"):
            self._file.write('{"step": 9')
            self._file.flush()
            kill()

def kill_after(owner, name):
    function = getattr(owner, name)
    def wrapped(*arguments, **named):
        result = function(*arguments, **named)
        if progress[0] >= step:
            kill()
        return result
    setattr(owner, name, wrapped)

progress = [0]
module.TrainingLog = KilledLog
if event not in ("loss", "values"):
    kill_after(training if event == "export" else module, event)
on_step = lambda done, steps, loss: progress.__setitem__(0, done)
reporter = training.ProgressReporter(on_step=on_step)
training.train(prepare(folder, **changes), folder, folder / out, reporter=reporter)
"""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with uninterrupted training runs, one of them with mined negatives."""
    folder = tmp_path_factory.mktemp("whole")
    with one_thread():
        train(prepare(folder, **SETTINGS), folder, folder / "out")
        train(prepare(folder, **SETTINGS, **MINING), folder, folder / "mining")
    return folder


def results(out: Path) -> dict[str, Any]:
    """Return everything that a resumed run must reproduce."""
    return {
        "weights": (out / "model" / "model.safetensors").read_bytes(),
        "moments": (out / "state" / "moments.safetensors").read_bytes(),
        "curve": (out / "curve.jsonl").read_text(),
        "state": json.loads((out / "state" / "state.json").read_text()),
        "card": (out / "model" / "README.md").read_text(),
    }


def killed(folder: Path, changes: dict[str, Any], event: str, step: int) -> Path:
    """Train until `event` of `step` kills the process, and return the training's folder."""
    out = folder / f"{event} {step} {'mining' in changes}"
    process = subprocess.run(
        [sys.executable, "-c", KILLED, folder, repr(changes), event, str(step), out.name],
        env=alone(),
        capture_output=True,
        text=True,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    return out


@pytest.mark.parametrize(
    ("event", "step"), [("loss", 2), ("loss", 5), ("values", 9), ("export", 1), ("save_state", 9)]
)
def test_kill_9_changes_no_byte(event: str, step: int, uninterrupted: Path) -> None:
    """A run that is killed between any two writes can resume; an incomplete log line is dropped."""
    out = killed(uninterrupted, SETTINGS, event, step)
    assert len(read_log(out / "curve.jsonl")) < 14
    messages: list[str] = []
    with one_thread():
        train(
            prepare(uninterrupted, **SETTINGS),
            uninterrupted,
            out,
            reporter=ProgressReporter(messages.append),
        )
    assert any("resuming after step" in text for text in messages) == ((event, step) != ("loss", 2))
    assert results(out) == results(uninterrupted / "out")


@pytest.mark.parametrize(
    ("event", "step"),
    [("loss", 6), ("mine", 3), ("mine", 7), ("write_negatives", 7), ("loss", 8), ("save_state", 8)],
)
def test_kill_9_changes_no_byte_of_a_run_with_mining(
    event: str, step: int, uninterrupted: Path
) -> None:
    """The same negatives are mined again, or read."""
    changes = SETTINGS | MINING
    out = killed(uninterrupted, changes, event, step)
    with one_thread():
        train(prepare(uninterrupted, **changes), uninterrupted, out)
    assert results(out) == results(uninterrupted / "mining")
    assert results(out)["weights"] != results(uninterrupted / "out")["weights"]


def test_missing_negatives_are_told(tmp_path: Path) -> None:
    """Later weights would find others."""
    changes = SETTINGS | MINING
    interrupted(prepare(tmp_path, **changes), tmp_path, 5)
    shutil.rmtree(tmp_path / "out" / "mined")
    with pytest.raises(TrainingError, match="the negatives of this training run are missing"):
        train(prepare(tmp_path, **changes), tmp_path, tmp_path / "out")


def test_the_seed_determines_all_randomness(uninterrupted: Path) -> None:
    """Equal seeds give equal bytes; a different seed gives different weights."""
    with one_thread():
        train(prepare(uninterrupted, **SETTINGS), uninterrupted, uninterrupted / "same")
        train(prepare(uninterrupted, **SETTINGS, seed=1), uninterrupted, uninterrupted / "other")
    assert results(uninterrupted / "same") == results(uninterrupted / "out")
    assert results(uninterrupted / "other")["weights"] != results(uninterrupted / "out")["weights"]


def test_the_seed_draws_new_layers(tmp_path: Path) -> None:
    """The output layer and the projections have other values from the beginning."""
    write_bert(tmp_path / "teacher", labels=1, seed=5)
    changes = {
        "model": {"head": "new output", "hidden": 8, "heads": 2, "dropout": 0.0},
        "match": {"teacher": str(tmp_path / "teacher")},
        "schedule": {"steps": 1, "batch": 1, "learning_rate": 1e-9},
    }
    drawn = []
    for seed in (0, 1):
        train(prepare(tmp_path, **changes, seed=seed), tmp_path, tmp_path / f"{seed}")
        weights = load_file(tmp_path / f"{seed}" / "state" / "weights.safetensors")
        drawn.append({name: weights[name].round(6) for name in NEW_LAYERS})
    for name in NEW_LAYERS:
        assert not np.array_equal(drawn[0][name], drawn[1][name])


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    """These are an incomplete state and an incomplete file."""
    training = prepare(tmp_path)
    train(training, tmp_path, tmp_path / "out")
    (tmp_path / "out" / ".birchbark-tmp-half").mkdir()
    (tmp_path / "out" / ".birchbark-tmp-half" / "weights.safetensors").write_text("x" * 99)
    (tmp_path / "out" / ".birchbark-tmp-curve").write_text("{")
    train(training, tmp_path, tmp_path / "out")
    assert not list((tmp_path / "out").glob(".birchbark-tmp-*"))


def interrupted(training: TrainingConfig, folder: Path, step: int) -> None:
    """Train into `folder`/out, and stop after `step`."""

    def stop(done: int, steps: int, loss: float) -> None:
        if done == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(training, folder, folder / "out", reporter=ProgressReporter(on_step=stop))


def test_patience_survives_interruptions(tmp_path: Path) -> None:
    """The number of validations without a better value is part of the training state."""
    changes = {"validation": {"every": 1, "patience": 5}, "schedule__steps": 99}
    changes |= {"schedule__learning_rate": 1e-9, "data__validation": 0.4}
    training = prepare(tmp_path, **changes)
    whole = train(training, tmp_path, tmp_path / "whole")
    assert (whole.best_step, whole.step, whole.stale) == (1, 6, 5)
    assert whole.ended == "no better value in 5 validations"
    for step in (3, 5):
        interrupted(training, tmp_path, step)
    assert train(training, tmp_path, tmp_path / "out") == whole
    assert results(tmp_path / "out") == results(tmp_path / "whole")


def validating(monkeypatch: pytest.MonkeyPatch, *values: dict[str, float]) -> None:
    """Let validations find these values of each data set, one after the other."""
    found = iter(values)

    def validated(*arguments: object) -> dict[str, ValidationResult]:
        return {name: ValidationResult([value], None) for name, value in next(found).items()}

    monkeypatch.setattr(training_run, "validate", validated)


def test_patience_counts_from_the_best_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worse values before it do not count."""
    validating(monkeypatch, *({"words": value} for value in (0.5, 0.4, 0.6, 0.5, 0.5, 0.5)))
    validation = {"every": 1, "patience": 2}
    training = prepare(tmp_path, validation=validation, schedule__steps=6)
    progress = train(training, tmp_path, tmp_path / "out")
    assert (progress.best_step, progress.step, progress.stale) == (3, 5, 2)


def test_the_model_with_the_best_mean_over_data_sets_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is the one kept that is best on the first of them."""
    values = ({"a": 0.5, "b": 0.5}, {"a": 0.6, "b": 0.1}, {"a": 0.4, "b": 0.8})
    validating(monkeypatch, *values)
    training = prepare(tmp_path, validation={"every": 1}, schedule__steps=3)
    progress = train(training, tmp_path, tmp_path / "out")
    assert (progress.best_step, progress.best) == (3, pytest.approx(0.6))


def test_the_last_model_can_be_kept(tmp_path: Path) -> None:
    """With keep = "last", the model is that of the last step, though an earlier one was better."""
    changes = {"schedule__learning_rate": 1e-9, "data__validation": 0.4, "schedule__steps": 4}
    for keep, kept in (("best", 1), ("last", 4)):
        folder = tmp_path / keep
        training = prepare(folder, **changes, validation={"every": 1, "keep": keep})
        progress = train(training, folder, folder / "out")
        assert (progress.best_step, progress.stale) == (kept, 3)
        lineage = json.loads((folder / "out" / "model" / "birchbark.json").read_text())
        assert lineage["trainings"][-1]["best_step"] == kept
        card = (folder / "out" / "model" / "README.md").read_text()
        assert f"4 steps, step {kept} is kept" in card


def test_the_model_with_the_lowest_loss_can_be_kept(tmp_path: Path) -> None:
    """The loss of a query is the mean over its lists."""
    rate = {"schedule__learning_rate": 0.3, "schedule__steps": 6}
    validation = {"every": 1, "measure": "loss"}
    training = prepare(tmp_path, **rate, validation=validation)
    progress = train(training, tmp_path, tmp_path / "out")
    lines = map(json.loads, (tmp_path / "out" / LOG).read_text().splitlines())
    validated = [line for line in lines if "values" in line]
    losses = [line["losses"]["words"] for line in validated]
    values = [line["values"]["words"] for line in validated]
    assert values == pytest.approx(losses)  # each query has as many lists
    assert progress.best_step == 1 + int(np.argmin(values))
    assert progress.best == min(values)
    assert progress.measures["words"]["queries"] < 10  # the number of all queries


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    """The same command returns the same result and changes no file."""
    training = prepare(tmp_path)
    first = train(training, tmp_path, tmp_path / "out")
    before = results(tmp_path / "out")
    steps: list[int] = []
    reporter = ProgressReporter(on_step=lambda done, steps_, loss: steps.append(done))
    assert train(training, tmp_path, tmp_path / "out", reporter=reporter) == first
    assert not steps
    assert results(tmp_path / "out") == before


def test_a_resumed_log_continues_after_the_saved_step(tmp_path: Path) -> None:
    """Lines of later steps, incomplete lines and other content are dropped."""
    path = tmp_path / "curve.jsonl"
    lines = ['{"step": 1, "loss": 0.5}', "\udcff", "[1]", "{}", '{"step": "x"}', "\0\0"]
    lines += ['{"step": 2, "loss": 0.25}', '{"step": 3, "loss": 0.1}', '{"ste']
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    assert [line["step"] for line in read_log(path)] == [1, 2, 3]
    with TrainingLog.open(path, 2, True) as log:
        log.add(step=3, loss=0.125)
    assert [line["loss"] for line in read_log(path)] == [0.5, 0.25, 0.125]


def test_only_one_process_can_train_in_a_folder(tmp_path: Path) -> None:
    """A second process raises an ArtifactError."""
    training = prepare(tmp_path)

    def second(done: int, steps: int, loss: float) -> None:
        from birchbark.errors import ArtifactError

        with pytest.raises(ArtifactError, match="another process is writing to this training"):
            train(training, tmp_path, tmp_path / "out")

    train(training, tmp_path, tmp_path / "out", reporter=ProgressReporter(on_step=second))


def test_settings_round_trip_through_toml(tmp_path: Path) -> None:
    """The TOML that the tests write is read back unchanged."""
    import tomllib

    values = settings(tmp_path, {"objective.kind": "ranknet"})
    assert tomllib.loads(toml(values)) == values
