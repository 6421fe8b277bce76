"""Do two processes learn what one learns with twice the batch?"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_trainings import alone, one_thread, prepare, settings, toml

from birchbark.train.config import read_training
from birchbark.train.curve import read_curve
from birchbark.train.training import train
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")
if not torch.distributed.is_available():
    pytest.skip("torch is built without distributed", allow_module_level=True)

CHANGES: dict[str, Any] = {
    "schedule.steps": 7,
    "schedule.batch": 2,
    "schedule.learning_rate": 1e-3,
    "data.validation": 0.4,
    "lists": {"each": "positive", "texts": 3},
    "validation": {"every": 3},
}


def two(folder: Path, changes: dict[str, Any], out: str) -> subprocess.CompletedProcess[str]:
    """Run `birchbark train` in two processes."""
    (folder / "two.toml").write_text(toml(settings(folder / "base", changes)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    asked = ["train", "two.toml", "--output", out, "--data", str(folder)]
    return subprocess.run(
        [sys.executable, *launch, "-m", "birchbark", *asked],
        env=alone(),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("taught", [False, True])
def test_two_are_one_with_twice_the_batch(taught: bool, tmp_path: Path) -> None:
    """The same losses, measures and weights, but for rounding; with a teacher as well."""
    prepare(tmp_path)
    changes = dict(CHANGES)
    if taught:
        write_bert(tmp_path / "teacher", labels=1, seed=9)
        changes["objective"] = {"kind": "soft", "teacher": str(tmp_path / "teacher")}
    ran = two(tmp_path, changes, "two")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("best at step") == 1
    values = settings(tmp_path / "base", changes | {"schedule.batch": 4})
    with one_thread():
        train(read_training(values, tmp_path / "one.toml"), tmp_path, tmp_path / "one")
    found, expected = (read_curve(tmp_path / name / "curve.jsonl") for name in ("two", "one"))
    assert [line.keys() for line in found] == [line.keys() for line in expected]
    for line, other in zip(found, expected, strict=True):
        if "loss" in line:
            assert line["loss"] == pytest.approx(other["loss"], abs=1e-5)
            assert line["rate"] == other["rate"]
    mine, theirs = (
        load_file(tmp_path / name / "model" / "model.safetensors") for name in ("two", "one")
    )
    for name, weight in mine.items():
        if not name.endswith("key.bias"):
            np.testing.assert_allclose(weight, theirs[name], rtol=0, atol=1e-5)


def test_what_is_wrong_ends_both(tmp_path: Path) -> None:
    """With the message, and without a process that waits for ever."""
    prepare(tmp_path)
    ran = two(tmp_path, CHANGES | {"data.files": ["gone.tsv"]}, "out")
    assert ran.returncode != 0
    assert "gone.tsv: no such file" in ran.stderr
