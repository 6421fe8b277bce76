"""How does birchbark's first stage compare with tantivy and bm25s, on one core?

    python -m benchmarks.first_stage --documents 20000 --work bench-work

Each engine builds its index in a separate process, is opened in new processes, and answers the same
queries in interleaved rounds. Figures are written to WORK/N/figures.json, and a table to standard
output or --output. Text, indexes and build figures remain in WORK, and --reuse uses them again.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from benchmarks import cold
from benchmarks.children import Child
from benchmarks.engines import ENGINES, Engine
from benchmarks.prepare import build, prepare_queries, prepare_text
from benchmarks.report import report
from benchmarks.rounds import measure_opening, run_rounds, spread

PEERS = ("tantivy", "bm25s")
Figures = dict[str, Any]


@click.command()
@click.option("--documents", default=1_000_000, show_default=True)
@click.option("--queries", "count", default=200, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option(
    "--opens",
    default=5,
    show_default=True,
    help="How often to start a process to measure opening and the shell command.",
)
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--text",
    "source",
    type=click.Path(path_type=Path, exists=True),
    help="File or folder of prose to draw documents from.  [default: this Python's manuals]",
)
@click.option("--work", type=click.Path(path_type=Path), default="bench-work", show_default=True)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    type=click.Choice(PEERS),
    default=PEERS,
    show_default=True,
    help="Engine to measure besides birchbark; repeat for several.",
)
@click.option(
    "--reuse",
    multiple=True,
    type=click.Choice(list(ENGINES)),
    help="Engine whose earlier build to use; repeat for several.",
)
@click.option(
    "--core", type=int, help="The core that all processes share.  [default: the last one]"
)
@click.option("--output", type=click.Path(path_type=Path), help="Markdown.  [default: stdout]")
def main(
    documents: int,
    count: int,
    rounds: int,
    opens: int,
    seed: int,
    source: Path | None,
    work: Path,
    peers: Sequence[str],
    reuse: Sequence[str],
    core: int | None,
    output: Path | None,
) -> None:
    """Measure birchbark's first stage and its peers."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0)) if core is None else core})
    os.environ.update(NUMBA_NUM_THREADS="1", OMP_NUM_THREADS="1")
    folder = (work / str(documents)).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in peers if not ENGINES[name].installed]
    engines = [
        engine
        for name, engine in ENGINES.items()
        if name not in missing and name in ("birchbark", *peers)
    ]
    text, made = prepare_text(work, documents, seed, source)
    built = {e.name: build(e, text, folder, made, e.name in reuse) for e in engines}
    queries = prepare_queries(text, folder, documents, count, seed)
    figures = {
        "machine": machine(),
        "text": made | {"documents": documents, "bytes": text.stat().st_size},
        "missing": missing,
        "read": Child("read").last(do="read", text=str(text)),
        "read_collection": Child("read_collection").last(do="read", text=str(text)),
        "queries": spread(queries),
        "engines": measure_engines(engines, built, folder, queries, rounds, opens),
        "cold": cold.measure(folder / "birchbark", queries, opens),
    }
    (folder / "figures.json").write_text(json.dumps(figures, indent=1))
    table = report(figures)
    if output:
        output.write_text(table)
    else:
        click.echo(table, nl=False)


def measure_engines(
    engines: Sequence[Engine],
    built: Figures,
    folder: Path,
    queries: Path,
    rounds: int,
    opens: int,
) -> Figures:
    """Return engine → version and figures of building, opening, memory and query times."""
    opened = {e.name: measure_opening(e, folder, queries, opens) for e in engines}
    children = {name: child for name, (child, _) in opened.items()}
    times = run_rounds({e: children[e.name] for e in engines}, rounds)
    return {
        e.name: {
            "version": e.version,
            "build": built[e.name],
            "open": opened[e.name][1],
            "searching": children[e.name].last(do="memory"),
            "times": times[e.name],
        }
        for e in engines
    }


def machine() -> Figures:
    """Describe the machine."""
    cpu = Path("/proc/cpuinfo").read_text()
    model = next(
        (line.split(":")[1].strip() for line in cpu.splitlines() if "model name" in line), ""
    )
    return {
        "processor": model + (", AVX-512" if "avx512f" in cpu else ""),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
    }


if __name__ == "__main__":
    main()
