"""How long does a single query take from the shell, including the start of Python?"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def measure(index: Path, queries: Path, runs: int) -> dict[str, Any]:
    """Return command → median milliseconds over `runs` runs, with cached files."""
    words = " ".join(json.loads(queries.read_text())[0]["five"])
    with tempfile.TemporaryDirectory() as scratch:
        query_file = Path(scratch) / "query.tsv"
        query_file.write_text(f"1\t{words}\n")
        times = {
            "retrieve": _median(
                [
                    "retrieve",
                    str(index),
                    "--queries",
                    str(query_file),
                    "--output",
                    f"{scratch}/run",
                ],
                runs,
            )
        }
    times["search first stage"] = _median(["search", str(index), words, "--model", "none"], runs)
    return times | {"help": _median(["--help"], runs)}


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
