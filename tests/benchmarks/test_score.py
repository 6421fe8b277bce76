"""Does the benchmark of scoring still run, and does its table say what was measured?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.score_engines import BASE, SCORE_ENGINES, _budgeted
from benchmarks.score_pairs import QUERIES, load_workloads
from benchmarks.score_report import report, tau

ROOT = Path(__file__).parents[2]


def test_workloads_are_real_texts_and_the_same_each_time(tmp_path: Path) -> None:
    """Without the collections they are from this Python's manuals; B's have 150 words."""
    one, other = (load_workloads(tmp_path, 0.1, 1) for _ in range(2))
    assert one == other
    assert "manuals" in one.source
    for kind, count in (("A", 20), ("B", 2)):
        assert [len(texts) for _, texts in one.requests[kind]] == [count] * QUERIES
    assert {len(text.split()) for _, texts in one.requests["B"] for text in texts} == {150}


def test_batches_of_the_plain_export_hold_every_text_once() -> None:
    """Shortest first, at most so many padded tokens."""
    lengths = [7, 500, 3, 600, 100, 99, 250]
    batches = _budgeted(lengths)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 512


def test_the_table_tells_ratios_targets_and_what_is_missing() -> None:
    """Round by round, since a busy machine is slow for all in one round."""
    names = ["birchbark fp32", "birchbark int8", BASE]
    seconds = {"birchbark fp32": [1.0, 2.0], "birchbark int8": [0.5, 1.1], BASE: [2.0, 4.0]}
    kinds = {kind: {**seconds, "peak": [100.0, 90.0]} for kind in "AB"}
    scores = {kind: {name: [0.1, 0.2, 0.3] for name in names} for kind in "AB"}
    machine = {"processor": "x", "memory_gb": 1, "python": "3", "numpy": "2"}
    shown = report(
        {
            "machine": machine,
            "source": "nothing",
            "missing": ["FlashRank"],
            "versions": dict.fromkeys(names, "1.0"),
            "workloads": {k: {"pairs": 10, "tokens": 5.0, "gflop": 50.0} for k in "AB"},
            "times": {"1": kinds | {"scores": scores}},
        }
    )
    assert "| birchbark fp32 1.0 | 7.5 (5.0–10.0) | 2.00 (2.00–2.00) | 33 % | 1.000 |" in shown
    assert "| birchbark fp32, A | 1.7 × | 2.00 × | met |" in shown
    assert "| aim, birchbark int8, A | 4.0 × | 3.82 × | missed |" in shown
    assert "FlashRank is not installed" in shown


def test_tau_counts_pairs() -> None:
    """1 for one order, -1 for the opposite."""
    assert tau([1, 2, 3], [2, 3, 4]) == 1
    assert tau([1, 2, 3], [3, 2, 1]) == -1


@pytest.mark.slow
def test_the_script_measures_what_is_installed(tmp_path: Path) -> None:
    """birchbark always; peers where `pip install 'birchbark[bench-score]'` has brought them."""
    small = ["--share", "0.02", "--rounds", "1", "--work", str(tmp_path), "--data", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.score", *small, "--output", str(tmp_path / "table.md")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "score" / "figures.json").read_text())
    assert figures["versions"].keys() | figures["missing"] == SCORE_ENGINES.keys()
    for found in figures["times"].values():
        for kind in "AB":
            assert found[kind]["birchbark int8"][0] > 0
            assert (
                len(found["scores"][kind]["birchbark fp32"]) == figures["workloads"][kind]["pairs"]
            )
