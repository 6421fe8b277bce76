"""What must lie on the disk before queries can be timed? The text, the indexes, the queries."""

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

RECIPE = 1  # raised when text.py makes other documents, or an engine is built in another way
WARM_UP = 100  # documents built first, so that compiled code lies in its cache
Figures = dict[str, Any]


def prepare_text(
    work: Path, documents: int, seed: int, source: Path | None
) -> tuple[Path, Figures]:
    """The JSONL file of the collection and what it was made of; made only where it is missing."""
    path = (work / f"text-{documents}.jsonl").resolve()
    wanted = {"recipe": RECIPE, "seed": seed, "source": source.name if source else "this Python"}
    record = path.with_suffix(".json")
    if path.exists() and record.exists():
        known: Figures = json.loads(record.read_text())
        if wanted.items() <= known.items():
            return path, known
    say("making the text")
    pool = load_pool(source)
    start = time.perf_counter()
    write_text(path, documents, seed, pool)
    made = wanted | {
        "seconds": time.perf_counter() - start,
        "pool_words": len(pool.words),
        "pool": pool.fingerprint,
    }
    record.write_text(json.dumps(made, indent=1))
    return path, made


def build(engine: Engine, text: Path, place: Path, made: Figures, reuse: bool) -> Figures:
    """Seconds, memory and files of a build; from an earlier one of the same kind if asked."""
    directory, record = (place / engine.name).resolve(), place / f"{engine.name}.json"
    kind = {"text": made["pool"], "seed": made["seed"], "recipe": RECIPE, "is": engine.version}
    if reuse and record.exists() and directory.exists():
        known: Figures = json.loads(record.read_text())
        if known["kind"] == kind:
            return known
        raise click.ClickException(f"{record} is of another build; run without --reuse")
    say(f"building with {engine.name}")
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        short = {"text": str(text), "limit": WARM_UP}
        Child(engine.name).last(do="build", directory=f"{scratch}/index", **short)
    shutil.rmtree(directory, ignore_errors=True)
    record.unlink(missing_ok=True)
    found: Figures = Child(engine.name).last(do="build", text=str(text), directory=str(directory))
    found |= {"kind": kind, "files": files(directory)}
    record.write_text(json.dumps(found, indent=1))
    return found


def files(directory: Path) -> dict[str, int]:
    """Bytes of every file, by its path in the index."""
    found = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.stat().st_size for path in found}


def prepare_queries(text: Path, place: Path, documents: int, count: int, seed: int) -> Path:
    """The file of queries; they stay the same for as long as the text does."""
    path = (place / f"queries-{seed}-{count}.json").resolve()
    if not path.exists() or path.stat().st_mtime < text.stat().st_mtime:
        say("making queries")
        arguments = map(str, (place / "birchbark", text, documents, count, seed, path))
        command = [sys.executable, "-m", "benchmarks.queries", *arguments]
        subprocess.run(command, check=True, cwd=ROOT)
    return path
