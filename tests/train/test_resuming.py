"""Does a training that was killed end with the bytes of one that was not?"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_trainings import alone, one_thread, prepare, settings, toml

from birchbark.train.config import Training
from birchbark.train.curve import Curve, read_curve
from birchbark.train.training import Talk, train

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

LONG = {
    "schedule__steps": 14,
    "schedule__batch": 4,
    "schedule__checkpoint": 2,
    "validation": {"every": 3, "patience": 99},
    "data__validation": 0.4,
    "model__dropout": 0.2,
    "lists": {"each": "positive", "texts": 3},
    "objective": {"kind": "ranknet"},
}
KILLED = """
import os, signal, sys
from pathlib import Path
from tiny_trainings import prepare
from birchbark.train import training as room
from birchbark.train.curve import Curve

folder, changes, place, step, out = sys.argv[1:]
folder, changes, step = Path(folder), eval(changes), int(step)
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)

class Dying(Curve):
    def add(self, **values):
        super().add(**values)
        if values["step"] == step and place == ("values" if "values" in values else "loss"):
            self._out.write('{"step": 9')
            self._out.flush()
            kill()

def dying(name):
    function = getattr(room, name)
    def wrapped(*arguments, **named):
        function(*arguments, **named)
        if progress[0] >= step:
            kill()
    return wrapped

progress = [0]
room.Curve = Dying
if place in ("export", "save_state"):
    setattr(room, place, dying(place))
stepped = lambda done, steps, loss: progress.__setitem__(0, done)
room.train(prepare(folder, **changes), folder, folder / out, talk=room.Talk(stepped=stepped))
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a training that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    with one_thread():
        train(prepare(folder, **LONG), folder, folder / "out")
    return folder


def kept(out: Path) -> dict[str, Any]:
    """What must be equal."""
    return {
        "weights": (out / "model" / "model.safetensors").read_bytes(),
        "moments": (out / "state" / "moments.safetensors").read_bytes(),
        "curve": (out / "curve.jsonl").read_text(),
        "state": json.loads((out / "state" / "state.json").read_text()),
        "card": (out / "model" / "README.md").read_text(),
    }


@pytest.mark.parametrize(
    ("place", "step"), [("loss", 2), ("loss", 5), ("values", 9), ("export", 1), ("save_state", 9)]
)
def test_kill_9_changes_nothing(place: str, step: int, undisturbed: Path) -> None:
    """Between any two things that are written; what it tore is cut off."""
    out = undisturbed / f"{place} {step}"
    died = subprocess.run(
        [sys.executable, "-c", KILLED, undisturbed, repr(LONG), place, str(step), out.name],
        env=alone(),
        capture_output=True,
        text=True,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert len(read_curve(out / "curve.jsonl")) < 14
    said: list[str] = []
    with one_thread():
        train(prepare(undisturbed, **LONG), undisturbed, out, talk=Talk(said.append))
    assert any("goes on after step" in text for text in said) == ((place, step) != ("loss", 2))
    assert kept(out) == kept(undisturbed / "out")


def test_all_that_is_random_is_the_seed_s(undisturbed: Path) -> None:
    """The same bytes from the same seed, others from another."""
    with one_thread():
        train(prepare(undisturbed, **LONG), undisturbed, undisturbed / "same")
        train(prepare(undisturbed, **LONG, seed=1), undisturbed, undisturbed / "other")
    assert kept(undisturbed / "same") == kept(undisturbed / "out")
    assert kept(undisturbed / "other")["weights"] != kept(undisturbed / "out")["weights"]


def test_what_a_kill_left_is_removed(tmp_path: Path) -> None:
    """Half a checkpoint, half a file."""
    training = prepare(tmp_path)
    train(training, tmp_path, tmp_path / "out")
    (tmp_path / "out" / ".tmp-half").mkdir()
    (tmp_path / "out" / ".tmp-half" / "weights.safetensors").write_text("x" * 99)
    (tmp_path / "out" / ".tmp-curve").write_text("{")
    train(training, tmp_path, tmp_path / "out")
    assert not list((tmp_path / "out").glob(".tmp-*"))


def interrupted(training: Training, folder: Path, step: int) -> None:
    """Train into `folder`/out, and stop after `step`."""

    def stop(done: int, steps: int, loss: float) -> None:
        if done == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(training, folder, folder / "out", talk=Talk(stepped=stop))


def test_patience_is_remembered(tmp_path: Path) -> None:
    """How often no better value came, through an interruption between two of them."""
    changes = {"validation": {"every": 1, "patience": 5}, "schedule__steps": 99}
    changes |= {"schedule__learning_rate": 1e-9, "data__validation": 0.4}
    training = prepare(tmp_path, **changes)
    whole = train(training, tmp_path, tmp_path / "whole")
    assert (whole.best_step, whole.step, whole.stale) == (1, 6, 5)
    assert whole.ended == "no better value in 5 validations"
    for step in (3, 5):
        interrupted(training, tmp_path, step)
    assert train(training, tmp_path, tmp_path / "out") == whole
    assert kept(tmp_path / "out") == kept(tmp_path / "whole")


def test_what_has_ended_is_not_learnt_again(tmp_path: Path) -> None:
    """The same command says the same, and changes nothing."""
    training = prepare(tmp_path)
    first = train(training, tmp_path, tmp_path / "out")
    before = kept(tmp_path / "out")
    steps: list[int] = []
    talk = Talk(stepped=lambda done, steps_, loss: steps.append(done))
    assert train(training, tmp_path, tmp_path / "out", talk=talk) == first
    assert not steps
    assert kept(tmp_path / "out") == before


def test_a_curve_goes_on_where_it_should(tmp_path: Path) -> None:
    """Lines of later steps, torn ones, and what is no line at all are left out."""
    path = tmp_path / "curve.jsonl"
    lines = ['{"step": 1, "loss": 0.5}', "\udcff", "[1]", "{}", '{"step": "x"}', "\0\0"]
    lines += ['{"step": 2, "loss": 0.25}', '{"step": 3, "loss": 0.1}', '{"ste']
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    assert [line["step"] for line in read_curve(path)] == [1, 2, 3]
    with Curve.open(path, 2, True) as curve:
        curve.add(step=3, loss=0.125)
    assert [line["loss"] for line in read_curve(path)] == [0.5, 0.25, 0.125]


def test_only_one_process_trains_in_a_folder(tmp_path: Path) -> None:
    """The second is told to wait."""
    training = prepare(tmp_path)

    def second(done: int, steps: int, loss: float) -> None:
        from birchbark.errors import ArtifactError

        with pytest.raises(ArtifactError, match="another process is writing to this training"):
            train(training, tmp_path, tmp_path / "out")

    train(training, tmp_path, tmp_path / "out", talk=Talk(stepped=second))


def test_settings_can_be_written(tmp_path: Path) -> None:
    """The tests' own TOML is read back as it was."""
    import tomllib

    values = settings(tmp_path, {"objective.kind": "ranknet"})
    assert tomllib.loads(toml(values)) == values
