"""Does the benchmark of scoring run, and is its report right?"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from benchmarks import score_pairs
from benchmarks.score_engines import BASE, SCORE_ENGINES, _batches
from benchmarks.score_pairs import QUERIES, load_workloads
from benchmarks.score_report import report, tau

ROOT = Path(__file__).parents[2]


def test_workloads_are_reproducible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without collections, texts come from this Python's manuals; those of B have 150 words."""
    monkeypatch.setattr(score_pairs, "_documents", cache(score_pairs._documents))
    first, second = (load_workloads(tmp_path, 0.1, 1) for _ in range(2))
    assert first == second
    assert "manuals" in first.source
    for kind, count in (("A", 20), ("B", 2)):
        assert [len(texts) for _, texts in first.requests[kind]] == [count] * QUERIES
    assert {len(text.split()) for _, texts in first.requests["B"] for text in texts} == {150}


def test_batches_of_the_plain_export_contain_every_text_once() -> None:
    """Shortest first, with at most 512 padded tokens, or one text."""
    lengths = [7, 500, 3, 600, 100, 99, 250]
    batches = _batches(lengths)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 512


def test_the_report_has_ratios_targets_and_missing_peers() -> None:
    """Ratios are computed by round, as other load affects all engines in a round."""
    names = ["birchbark fp32", "birchbark int8", BASE]
    seconds = {"birchbark fp32": [1.0, 2.0], "birchbark int8": [0.5, 1.1], BASE: [2.0, 4.0]}
    kinds = {kind: {**seconds, "peak": [100.0, 90.0]} for kind in "AB"}
    scores = {kind: {name: [0.1, 0.2, 0.3] for name in names} for kind in "AB"}
    machine = {"processor": "x", "memory_gb": 1, "python": "3", "numpy": "2"}
    table = report(
        {
            "machine": machine,
            "source": "nothing",
            "missing": ["FlashRank"],
            "versions": dict.fromkeys(names, "1.0"),
            "workloads": {k: {"pairs": 10, "tokens": 5.0, "gflop": 50.0} for k in "AB"},
            "times": {"1": kinds | {"scores": scores}},
        }
    )
    assert "| birchbark fp32 1.0 | 7.5 (5.0–10.0) | 2.00 (2.00–2.00) | 33 % | 1.000 |" in table
    assert "| birchbark fp32, A | 1.7 × | 2.00 × | met |" in table
    assert "| aim, birchbark int8, A | 4.0 × | 3.82 × | missed |" in table
    assert "FlashRank is not installed" in table


def test_tau_counts_pairs() -> None:
    """It is 1 for equal orders and −1 for opposite ones."""
    assert tau([1, 2, 3], [2, 3, 4]) == 1
    assert tau([1, 2, 3], [3, 2, 1]) == -1


@pytest.mark.slow
def test_the_script_measures_installed_engines(tmp_path: Path) -> None:
    """birchbark always; peers if `pip install 'birchbark[bench]'` has installed them."""
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
    for times in figures["times"].values():
        for kind in "AB":
            assert times[kind]["birchbark int8"][0] > 0
            assert (
                len(times["scores"][kind]["birchbark fp32"]) == figures["workloads"][kind]["pairs"]
            )
