"""Does the benchmark of training run, and is its report right?"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.score_model import write_model
from benchmarks.training import shape, write_pairs
from benchmarks.training_engines import BASE, MAX_TOKENS, OURS, TRAINING_ENGINES
from benchmarks.training_report import report

ROOT = Path(__file__).parents[2]
GROUPED = "Trainer fp32, grouped by length"


def test_pairs_are_written_with_alternating_labels(tmp_path: Path) -> None:
    """They are in the order of the requests, as in a training file."""
    path = write_pairs(tmp_path, "A", [("q", ["one", "two"]), ("other", ["three"])])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [tuple(row.values()) for row in rows] == [
        ("q", "one", 0),
        ("q", "two", 1),
        ("other", "three", 0),
    ]


def test_padding_is_to_the_longest_of_a_batch(tmp_path: Path) -> None:
    """Tokens include special tokens and are limited to the model's input length."""
    write_model(tmp_path)
    workload = shape(tmp_path, [("word", ["word", "word word word", "word " * 600])])
    assert workload == {"pairs": 3, "tokens": (5 + 7 + MAX_TOKENS) / 3, "padded": MAX_TOKENS}


def figures() -> dict[str, object]:
    """Return figures of two rounds of each engine."""
    seconds = {OURS: [1.0, 4.0], BASE: [2.0, 4.0], GROUPED: [2.5, 2.0]}
    return {
        "machine": {"processor": "x", "memory_gb": 1, "python": "3", "numpy": "2"},
        "cores": 2,
        "torch": "2.0",
        "source": "nothing",
        "missing": ["Trainer bf16"],
        "versions": dict.fromkeys(seconds, "1.0"),
        "workloads": {k: {"pairs": 10, "tokens": 5.0, "padded": 9.0} for k in "AB"},
        "losses": {"A": {OURS: [0.5, 0.25], BASE: [0.5, 0.25003]}, "B": {OURS: [1], BASE: [1.1]}},
        "times": {"A": seconds, "B": seconds | {OURS: [1.0, 2.0]}},
    }


def test_the_report_has_speeds_ratios_targets_and_missing_peers() -> None:
    """Ratios are computed by round, as other load affects all loops in a round."""
    table = report(figures())
    assert f"| {OURS} (1.0) | 6.2 (2.5–10.0) | 1.50 (1.00–2.00) |" in table
    assert f"| {GROUPED} (1.0) | 4.5 (4.0–5.0) | 1.40 (0.80–2.00) |" in table
    assert f"| {OURS} / {BASE}, A | 1.5 × | 1.50 × | met |" in table
    assert f"| {OURS} / {BASE}, B | 1.5 × | 2.00 × | met |" in table
    assert "| birchbark bf16 /" not in table
    assert "Trainer bf16 is not installed" in table
    slower = figures() | {"times": {"A": {OURS: [1.0], BASE: [1.2]}}}
    assert f"| {OURS} / {BASE}, A | 1.5 × | 1.20 × | missed |" in report(slower)


def test_the_report_compares_losses() -> None:
    """Losses are compared for each workload and step, unless one loop was not measured."""
    table = report(figures())
    assert "at most 3.0e-05 (target: 0.0001; met)" in table
    assert f"| {BASE} | 0.500000 | 0.250030 |" in table
    assert "at most 1.0e-01 (target: 0.0001; missed)" in table
    assert "target: 0.0001" not in report(figures() | {"losses": {"A": {}}})


@pytest.mark.slow
@pytest.mark.skipif(
    not all(engine.installed for engine in TRAINING_ENGINES.values()),
    reason="the extra bench is not installed",
)
def test_the_script_measures_every_loop(tmp_path: Path) -> None:
    """The losses of both loops agree on the same batches."""
    small = ["--share", "0.02", "--rounds", "1", "--work", str(tmp_path), "--data", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.training", *small, "--output", str(tmp_path / "t.md")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "training" / "figures.json").read_text())
    assert figures["times"]["A"].keys() == TRAINING_ENGINES.keys()
    for kind, losses in figures["losses"].items():
        assert figures["times"][kind][OURS][0] > 0
        assert losses[OURS] == pytest.approx(losses[BASE], abs=1e-4)
    assert f"{OURS} / {BASE}, B" in (tmp_path / "t.md").read_text()


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_nothing_is_measured(tmp_path: Path) -> None:
    """The error names the extra to install."""
    small = ["--share", "0.02", "--work", str(tmp_path), "--data", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.training", *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "birchbark[bench]" in done.stderr
