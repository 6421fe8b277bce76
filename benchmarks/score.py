"""How fast are pairs scored, beside sentence-transformers, FlashRank and plain ONNX Runtime?

    python -m benchmarks.score --output benchmarks/RESULTS-SCORE.md

Every engine loads the same weights in a process of its own, and goes from strings to scores; the
processes take turns, one at a time, so that a busy machine is busy for all alike.
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

from benchmarks.children import ROOT, Child, say
from benchmarks.first_stage import machine
from benchmarks.score_engines import SCORE_ENGINES
from benchmarks.score_model import PLAIN, QUANTISED, write_model
from benchmarks.score_pairs import Requests, load_workloads
from benchmarks.score_report import report

Figures = dict[str, Any]
DATA = Path(os.environ.get("BIRCHBARK_DATA", ROOT.parent / "shared" / "data"))
FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--share", default=1.0, show_default=True, help="Of the texts, for a quick look.")
@click.option("--seed", default=1, show_default=True)
@click.option("--data", type=FOLDER, default=DATA, show_default=True, help="Collections.")
@click.option("--work", type=FOLDER, default="bench-work", show_default=True)
@click.option(
    "--engine",
    "chosen",
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
    chosen: Sequence[str],
    output: Path | None,
) -> None:
    """Measure how fast birchbark scores, beside its peers."""
    place = (work / "score").resolve()
    place.mkdir(parents=True, exist_ok=True)
    workloads = load_workloads(data, share, seed)
    pairs = place / "pairs.json"
    pairs.write_text(json.dumps(workloads.requests))
    wanted = [name for name in SCORE_ENGINES if name in (chosen or SCORE_ENGINES)]
    engines = [name for name in wanted if SCORE_ENGINES[name].installed]
    model = prepare_model(place, engines)
    last = sorted(os.sched_getaffinity(0))[-2:]
    figures = {
        "machine": machine(),
        "source": workloads.source,
        "missing": [name for name in wanted if name not in engines],
        "versions": {name: SCORE_ENGINES[name].version for name in engines},
        "workloads": {k: shape(model, r) for k, r in workloads.requests.items()},
        "times": {
            str(len(cores)): in_turns(engines, model, pairs, cores, rounds)
            for cores in (last[-1:], last)[: len(last)]
        },
    }
    (place / "figures.json").write_text(json.dumps(figures))
    table = report(figures)
    if output:
        output.write_text(table)
    else:
        click.echo(table, nl=False)


def prepare_model(place: Path, engines: Sequence[str]) -> Path:
    """The model's directory, with a plain export where a peer needs one."""
    model = place / "model"
    write_model(model)
    if any("ONNX" in name or name == "FlashRank" for name in engines):
        say("exporting")
        for name in (PLAIN, QUANTISED):
            (model / name).unlink(missing_ok=True)
        command = [sys.executable, "-m", "benchmarks.score_model", str(model)]
        subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    return model


def shape(model: Path, requests: Requests) -> Figures:
    """Number of pairs, their tokens, and what they ask of the processor."""
    from birchbark.checkpoint.reader import Checkpoint
    from birchbark.checkpoint.tokenizer import Pieces

    checkpoint = Checkpoint.open(model)
    pieces, of = Pieces(checkpoint), checkpoint.shape
    lengths = []
    for query, texts in requests:
        head, *others = pieces.encode([query, *texts])
        lengths += [len(head) + len(other) + pieces.extra_pair for other in others]
    dense, inner = of.hidden**2, of.hidden * of.intermediate
    work = 0.0
    for n in lengths:
        whole = n * (4 * dense + 2 * inner + 2 * n * of.hidden)
        first = n * (2 * dense + 2 * of.hidden) + 2 * dense + 2 * inner  # [CLS] alone
        work += 2 * ((of.layers - 1) * whole + first)
    return {"pairs": len(lengths), "tokens": sum(lengths) / len(lengths), "gflop": work / 1e9}


def in_turns(
    engines: Sequence[str], model: Path, pairs: Path, cores: Sequence[int], rounds: int
) -> Figures:
    """Workload → engine → seconds of each round and the scores; and the cores' peak."""
    where = (str(model), str(pairs), ",".join(map(str, cores)))
    children = {name: Child(name, *where, module="score_worker") for name in [*engines, "peak"]}
    found: Figures = {}
    for number in range(rounds + 1):
        for kind in ("A", "B"):
            say(f"{len(cores)} core(s), round {number} of {rounds}, workload {kind}")
            at = found.setdefault(kind, {name: [] for name in children})
            for name, child in children.items():
                answer = child.ask(kind=kind, limit=None if number else 1)  # the first warms up
                if number:
                    at[name].append(answer if name == "peak" else answer["seconds"])
                    if name != "peak":
                        found.setdefault("scores", {}).setdefault(kind, {})[name] = answer["scores"]
    for child in children.values():
        child.end()
    return found


if __name__ == "__main__":
    main()
