"""How long does one query take from the shell, everything started anew?"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FIRST_STAGE_ONLY = "--first-stage-only"  # of `birchbark search`; measured where it exists


def measure(index: Path, queries: Path, runs: int) -> dict[str, Any]:
    """Milliseconds of each command, the median of `runs` runs; the files are in the cache."""
    words = " ".join(json.loads(queries.read_text())[0]["five"])
    with tempfile.TemporaryDirectory() as scratch:
        asked = Path(scratch) / "query.tsv"
        asked.write_text(f"1\t{words}\n")
        found = {
            "retrieve": _median(
                ["retrieve", str(index), "--queries", str(asked), "--output", f"{scratch}/run"],
                runs,
            )
        }
    if FIRST_STAGE_ONLY in _birchbark(["search", "--help"]).stdout:
        found["search first stage"] = _median(["search", str(index), words, FIRST_STAGE_ONLY], runs)
    return found | {"help": _median(["--help"], runs)}


def _median(arguments: list[str], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        _birchbark(arguments)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def _birchbark(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("birchbark")
    start = [str(command)] if command.exists() else [sys.executable, "-m", "birchbark"]
    return subprocess.run([*start, *arguments], check=True, capture_output=True, text=True)
