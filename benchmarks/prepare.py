"""How are the texts, indexes and queries of the first-stage benchmark prepared?"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.children import ROOT, Child, say
from benchmarks.engines import Engine
from benchmarks.text import load_pool, write_text

RECIPE = 1  # raise this when text.py generates other documents or an engine is built differently
WARM_UP = 100  # documents indexed first, so that compiled code is cached
Figures = dict[str, Any]


def prepare_text(
    work: Path, documents: int, seed: int, source: Path | None
) -> tuple[Path, Figures]:
    """Return the JSONL file of the collection and its description; generate it if missing."""
    path = (work / f"text-{documents}.jsonl").resolve()
    parameters = {
        "recipe": RECIPE,
        "seed": seed,
        "source": source.name if source else "this Python",
    }
    record = path.with_suffix(".json")
    if path.exists() and record.exists():
        known: Figures = json.loads(record.read_text())
        if parameters.items() <= known.items():
            return path, known
    say("generating the text")
    pool = load_pool(source)
    start = time.perf_counter()
    write_text(path, documents, seed, pool)
    made = parameters | {
        "seconds": time.perf_counter() - start,
        "pool_words": len(pool.words),
        "pool": pool.fingerprint,
    }
    record.write_text(json.dumps(made, indent=1))
    return path, made


def build(engine: Engine, text: Path, folder: Path, made: Figures, reuse: bool) -> Figures:
    """Build an engine's index; return seconds, memory and files. reuse: use an earlier build."""
    directory, record = (folder / engine.name).resolve(), folder / f"{engine.name}.json"
    kind = {"text": made["pool"], "seed": made["seed"], "recipe": RECIPE, "is": engine.version}
    if reuse and record.exists() and directory.exists():
        known: Figures = json.loads(record.read_text())
        if known["kind"] == kind:
            return known
        raise click.ClickException(f"{record} belongs to a different build; run without --reuse")
    say(f"building with {engine.name}")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        short = {"text": str(text), "limit": WARM_UP}
        Child(engine.name).last(do="build", directory=f"{scratch}/index", **short)
    shutil.rmtree(directory, ignore_errors=True)
    record.unlink(missing_ok=True)
    figures: Figures = Child(engine.name).last(do="build", text=str(text), directory=str(directory))
    figures |= {"kind": kind, "files": files(directory)}
    record.write_text(json.dumps(figures, indent=1))
    return figures


def files(directory: Path) -> dict[str, int]:
    """Return path in the index → bytes, for every file."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.stat().st_size for path in paths}


def prepare_queries(text: Path, folder: Path, documents: int, count: int, seed: int) -> Path:
    """Return the file of queries; generate it if it is missing or older than the text."""
    path = (folder / f"queries-{seed}-{count}.json").resolve()
    if not path.exists() or path.stat().st_mtime < text.stat().st_mtime:
        say("generating queries")
        arguments = map(str, (folder / "birchbark", text, documents, count, seed, path))
        command = [sys.executable, "-m", "benchmarks.queries", *arguments]
        subprocess.run(command, check=True, cwd=ROOT)
    return path
