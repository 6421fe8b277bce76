"""Does `make bench NAME=NAME` know each benchmark, and does benchmarks/README.md list it?"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from benchmarks.__main__ import FOLDER, NAMES, results


def test_every_benchmark_is_listed_and_has_results() -> None:
    """The table of README.md names all, and the results of each are in a file of its name."""
    rows = re.findall(r"^\| `([\w-]+)` \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(NAMES)
    for name in NAMES:
        assert find_spec(f"benchmarks.{name.replace('-', '_')}")
        assert results(name).is_file()


@pytest.mark.parametrize("arguments", [[], ["speed"]])
def test_an_unknown_name_is_refused(arguments: list[str]) -> None:
    """The message lists the names."""
    command = [sys.executable, "-m", "benchmarks", *arguments]
    done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("which benchmark? make bench NAME=NAME, one of first-stage")
