"""Do two processes train the same model as one with twice the batch?"""

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

from birchbark.train.read_config import read_training
from birchbark.train.training import train
from birchbark.train.training_log import read_log
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed")
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


def run_two(folder: Path, *program: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program (a file, or -m and a module) with its arguments in two processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    return subprocess.run(
        [sys.executable, *launch, *program],
        env=alone(),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def train_in_two(
    folder: Path, changes: dict[str, Any], out: str
) -> subprocess.CompletedProcess[str]:
    """Run `birchbark train` in two processes."""
    (folder / "two.toml").write_text(toml(settings(folder / "base", changes)))
    arguments = ["train", "two.toml", "--output", out, "--data", str(folder)]
    return run_two(folder, "-m", "birchbark", *arguments)


@pytest.mark.parametrize("kind", ["plain", "teacher", "mining"])
def test_two_processes_equal_one_with_twice_the_batch(kind: str, tmp_path: Path) -> None:
    """Losses, measures and weights are equal up to rounding, also with a teacher or mining."""
    prepare(tmp_path)
    changes = dict(CHANGES)
    if kind == "mining":
        changes |= {"mining": {"every": 3}}
    if kind == "teacher":
        write_bert(tmp_path / "teacher", labels=1, seed=9)
        changes["objective"] = {"kind": "soft", "teacher": str(tmp_path / "teacher")}
    completed = train_in_two(tmp_path, changes, "two")
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr.count("model: ") == 1
    values = settings(tmp_path / "base", changes | {"schedule.batch": 4})
    with one_thread():
        train(read_training(values, tmp_path / "one.toml"), tmp_path, tmp_path / "one")
    found, expected = (read_log(tmp_path / name / "curve.jsonl") for name in ("two", "one"))
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


def test_a_fault_ends_both_processes(tmp_path: Path) -> None:
    """The error message is printed; no process waits forever."""
    prepare(tmp_path)
    completed = train_in_two(tmp_path, CHANGES | {"data.files": ["gone.tsv"]}, "out")
    assert completed.returncode != 0
    assert "gone.tsv: no such file" in completed.stderr


THREADS = """
from contextlib import suppress
from pathlib import Path
import torch
from birchbark.train.distributed import open_process_group

def connected():
    names = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            names.append((thread / "comm").read_text())
    return [name for name in names if "gloo" in name]

with open_process_group("cpu") as processes:
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])  # imports torch.distributed.nn
    processes.sum_over_processes([torch.ones(3)])
    assert connected()
assert not connected()
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no /proc to list threads")
def test_connections_end_with_the_group(tmp_path: Path) -> None:
    """No thread of a connection is left, which could abort the process at its end."""
    (tmp_path / "threads.py").write_text(THREADS)
    completed = run_two(tmp_path, "threads.py")
    assert completed.returncode == 0, completed.stderr
