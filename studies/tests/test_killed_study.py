"""Does a study that is killed repeatedly end with the same bytes as an uninterrupted one?"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from birchbark.records import Document
from conftest import WORDS, write_bert
from small_study import write_small_study

RECIPE = """
kind = "evidence"
title = "Killed"
measures = ["AP", "P@5"]
[evidence]
models = { cross = "MODEL", similar = "OTHER" }
topics = ["cross"]
pruned = true
lengths = [1]
depth = 40
best = [1, 2]
step = 0.25
"""
KILLS = 6


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A study whose scoring takes some seconds."""
    random = np.random.default_rng(6)
    texts = [
        ". ".join(" ".join(random.choice(WORDS[:-4], 9)) for _ in range(12)) + "."
        for _ in range(400)
    ]
    queries = [" ".join(random.choice(WORDS[:-4], 1 + n % 3, replace=False)) for n in range(60)]
    judged = [f"{n} 0 d{d} 1\n" for n in range(60) for d in random.choice(400, 9, replace=False)]
    write_small_study(
        tmp_path,
        RECIPE,
        documents=[Document(f"d{n}", {"text": text}) for n, text in enumerate(texts)],
        queries={str(n): text for n, text in enumerate(queries)},
        qrels="".join(judged),
        MODEL=write_bert(tmp_path / "cross", labels=1, layers=4, positions=64),
        OTHER=write_bert(tmp_path / "other", layers=4, positions=64, seed=1),
    )
    return tmp_path


def started(here: Path, output: str, cache: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "birchbark", "study", "run", here / "recipe.toml"]
    command += ["--data", here, "--output", here / output, "--cache", here / cache]
    quiet = subprocess.DEVNULL
    # temporary files of killed studies are removed with the test's folder
    environment = {**os.environ, "TMPDIR": str(here)}
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)


def contents(folder: Path) -> dict[str, bytes]:
    """Read all files but the manifest: figures, runs and pages."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in files
        if path.name != "manifest.json"
    }


@pytest.mark.slow
def test_a_killed_study_ends_with_the_same_bytes(here: Path) -> None:
    """The study is killed at random times; each run resumes with the cached scores."""
    begun = time.monotonic()
    uninterrupted = started(here, "expected", "cache")
    assert uninterrupted.wait(300) == 0
    seconds = time.monotonic() - begun
    random, killed = np.random.default_rng(0), 0
    for _ in range(20 * KILLS):
        run = started(here, "out", "again")
        time.sleep(random.uniform(0.2, 1.1 * seconds))
        run.send_signal(signal.SIGKILL)
        run.wait(60)
        if (here / "out").exists():  # the study finished before it was killed
            assert contents(here / "out") == contents(here / "expected")
            shutil.rmtree(here / "out")
            seconds *= 0.8  # the cache makes it faster
        else:
            killed += 1
        if killed == KILLS:
            break
    assert killed == KILLS
    assert started(here, "out", "again").wait(300) == 0
    assert contents(here / "out") == contents(here / "expected")
