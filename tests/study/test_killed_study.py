"""Does a study that is killed again and again end with the bytes of one that was not?"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from conftest import WORDS, write_bert

RECIPE = """
kind = "evidence"
title = "Killed"
measures = ["AP", "P@5"]
[evidence]
models = { cross = "MODEL", similar = "OTHER" }
looked = ["cross"]
pruned = true
lengths = [1]
depth = 40
best = [1, 2]
step = 0.25
[[collections]]
name = "C"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "qrels.txt"
"""
KILLS = 20


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A collection that takes some seconds to score."""
    random = np.random.default_rng(6)
    lines = [
        json.dumps(
            {
                "id": f"d{n}",
                "text": ". ".join(" ".join(random.choice(WORDS[:-4], 9)) for _ in range(12)) + ".",
            }
        )
        for n in range(400)
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    asked = [" ".join(random.choice(WORDS[:-4], 1 + n % 3, replace=False)) for n in range(60)]
    (tmp_path / "q.tsv").write_text("".join(f"{n}\t{text}\n" for n, text in enumerate(asked)))
    judged = [f"{n} 0 d{d} 1\n" for n in range(60) for d in random.choice(400, 9, replace=False)]
    (tmp_path / "qrels.txt").write_text("".join(judged))
    cross = write_bert(tmp_path / "cross", labels=1, layers=4, positions=64)
    other = write_bert(tmp_path / "other", layers=4, positions=64, seed=1)
    recipe = RECIPE.replace("MODEL", str(cross)).replace("OTHER", str(other))
    (tmp_path / "recipe.toml").write_text(recipe)
    return tmp_path


def started(here: Path, output: str, kept: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "birchbark", "study", "run", here / "recipe.toml"]
    command += ["--data", here, "--output", here / output, "--keep", here / kept]
    quiet = subprocess.DEVNULL
    # what a killed one leaves behind goes with the test's folder
    environment = {**os.environ, "TMPDIR": str(here)}
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)


def contents(folder: Path) -> dict[str, bytes]:
    """All that is the same for the same inputs: figures, runs, pages."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in files
        if path.name != "manifest.json"
    }


@pytest.mark.slow
def test_a_study_that_is_killed_ends_as_if_it_were_not(here: Path) -> None:
    """Twenty times, anywhere; each run goes on with the scores that were kept."""
    begun = time.monotonic()
    whole = started(here, "whole", "kept")
    assert whole.wait(300) == 0
    seconds = time.monotonic() - begun
    chance, killed = np.random.default_rng(0), 0
    for _ in range(20 * KILLS):
        run = started(here, "out", "again")
        time.sleep(chance.uniform(0.2, 1.1 * seconds))
        run.send_signal(signal.SIGKILL)
        run.wait(60)
        if (here / "out").exists():  # it was done: there is all of it
            assert contents(here / "out") == contents(here / "whole")
            shutil.rmtree(here / "out")
            seconds *= 0.8  # what is kept makes it faster
        else:
            killed += 1
        if killed == KILLS:
            break
    assert killed == KILLS
    assert started(here, "out", "again").wait(300) == 0
    assert contents(here / "out") == contents(here / "whole")
