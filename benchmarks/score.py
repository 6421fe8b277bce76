"""How fast are pairs scored, compared with sentence-transformers, FlashRank and ONNX Runtime?

    python -m benchmarks.score --output benchmarks/RESULTS-SCORE.md

Every engine loads the same weights in a separate process, and turns strings into scores. Rounds are
interleaved, one process at a time, so that other load on the machine affects all engines equally.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.children import DATA, ROOT, Child, say
from benchmarks.first_stage import machine
from benchmarks.score_engines import SCORE_ENGINES
from benchmarks.score_model import PLAIN, QUANTISED, write_model
from benchmarks.score_pairs import Requests, load_workloads
from benchmarks.score_report import report

Figures = dict[str, Any]
FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option(
    "--share", default=1.0, show_default=True, help="Share of the texts to use; less is faster."
)
@click.option("--seed", default=1, show_default=True)
@click.option("--data", type=FOLDER, default=DATA, show_default=True, help="Folder of collections.")
@click.option("--work", type=FOLDER, default="bench-work", show_default=True)
@click.option(
    "--engine",
    "names",
    multiple=True,
    type=click.Choice(list(SCORE_ENGINES)),
    help="Repeat for several.  [default: all]",
)
@click.option("--output", type=FOLDER, help="Markdown.  [default: stdout]")
def main(
    rounds: int,
    share: float,
    seed: int,
    data: Path,
    work: Path,
    names: Sequence[str],
    output: Path | None,
) -> None:
    """Measure how fast birchbark and its peers score pairs."""
    folder = (work / "score").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    workloads = load_workloads(data, share, seed)
    pairs = folder / "pairs.json"
    pairs.write_text(json.dumps(workloads.requests))
    requested = [name for name in SCORE_ENGINES if name in (names or SCORE_ENGINES)]
    engines = [name for name in requested if SCORE_ENGINES[name].installed]
    model = prepare_model(folder, engines)
    last_cores = sorted(os.sched_getaffinity(0))[-2:]
    figures = {
        "machine": machine(),
        "source": workloads.source,
        "missing": [name for name in requested if name not in engines],
        "versions": {name: SCORE_ENGINES[name].version for name in engines},
        "workloads": {k: shape(model, r) for k, r in workloads.requests.items()},
        "times": {
            str(len(cores)): run_rounds(engines, model, pairs, cores, rounds)
            for cores in (last_cores[-1:], last_cores)[: len(last_cores)]
        },
    }
    (folder / "figures.json").write_text(json.dumps(figures))
    table = report(figures)
    if output:
        output.write_text(table)
    else:
        click.echo(table, nl=False)


def prepare_model(folder: Path, engines: Sequence[str]) -> Path:
    """Return the model's directory, with a plain ONNX export if a peer needs one."""
    model = folder / "model"
    write_model(model)
    if any("ONNX" in name or name == "FlashRank" for name in engines):
        say("exporting")
        for name in (PLAIN, QUANTISED):
            (model / name).unlink(missing_ok=True)
        command = [sys.executable, "-m", "benchmarks.score_model", str(model)]
        subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    return model


def shape(model: Path, requests: Requests) -> Figures:
    """Return the number of pairs, their mean length in tokens, and the GFLOP to score them."""
    from birchbark.checkpoint.checkpoint import Checkpoint
    from birchbark.checkpoint.tokenizer import CheckpointTokenizer

    checkpoint = Checkpoint.open(model)
    tokenizer, config = CheckpointTokenizer(checkpoint), checkpoint.config
    lengths = []
    for query, texts in requests:
        query_ids, *text_ids = tokenizer.encode([query, *texts])
        lengths += [len(query_ids) + len(ids) + tokenizer.pair_overhead for ids in text_ids]
    hidden = config.hidden
    dense, inner = hidden**2, hidden * config.intermediate
    flop = 0.0
    for n in lengths:
        layer = n * (4 * dense + 2 * inner + 2 * n * hidden)
        last = n * (2 * dense + 2 * hidden) + 2 * dense + 2 * inner  # [CLS] only
        flop += 2 * ((config.layers - 1) * layer + last)
    return {"pairs": len(lengths), "tokens": sum(lengths) / len(lengths), "gflop": flop / 1e9}


def run_rounds(
    engines: Sequence[str], model: Path, pairs: Path, cores: Sequence[int], rounds: int
) -> Figures:
    """Return workload → engine → seconds per round, and `scores` → workload → engine → scores.

    The engine `peak` has GFLOP/s instead of seconds.
    """
    arguments = (str(model), str(pairs), ",".join(map(str, cores)))
    children = {name: Child(name, *arguments, module="score_worker") for name in [*engines, "peak"]}
    figures: Figures = {}
    for number in range(rounds + 1):
        for kind in ("A", "B"):
            say(f"{len(cores)} core(s), round {number} of {rounds}, workload {kind}")
            seconds = figures.setdefault(kind, {name: [] for name in children})
            for name, child in children.items():
                answer = child.ask(kind=kind, limit=None if number else 1)  # the first warms up
                if number:
                    seconds[name].append(answer if name == "peak" else answer["seconds"])
                    if name != "peak":
                        figures.setdefault("scores", {}).setdefault(kind, {})[name] = answer[
                            "scores"
                        ]
    for child in children.values():
        child.end()
    return figures


if __name__ == "__main__":
    main()
