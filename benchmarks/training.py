"""How fast does birchbark train, beside the loop of transformers?

    python -m benchmarks.training --output benchmarks/RESULTS-TRAINING.md

Every loop trains the same weights on the same pairs in a process of its own, on all cores; the
processes take turns, one at a time, so that a busy machine is busy for all alike. Before that, both
learn from the same batches without dropout, to see that they learn the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.children import Child, say
from benchmarks.first_stage import machine
from benchmarks.score import DATA, FOLDER
from benchmarks.score_model import write_model
from benchmarks.score_pairs import Requests, load_workloads
from benchmarks.training_engines import BASE, BATCH, LONGEST, OURS, SEED, TRAINING_ENGINES
from benchmarks.training_report import report

Figures = dict[str, Any]
WARM, CHECKED = 2, 5  # steps


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--share", default=1.0, show_default=True, help="Of the texts, for a quick look.")
@click.option("--seed", default=1, show_default=True, help="Of the texts.")
@click.option("--data", type=FOLDER, default=DATA, show_default=True, help="Collections.")
@click.option("--work", type=FOLDER, default="bench-work", show_default=True)
@click.option(
    "--engine",
    "chosen",
    multiple=True,
    type=click.Choice(list(TRAINING_ENGINES)),
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
    """Measure how fast birchbark trains, beside transformers."""
    place = (work / "training").resolve()
    write_model(place / "model")
    workloads = load_workloads(data, share, seed)
    files = {kind: write_pairs(place, kind, r) for kind, r in workloads.requests.items()}
    wanted = [name for name in TRAINING_ENGINES if name in (chosen or TRAINING_ENGINES)]
    engines = [name for name in wanted if TRAINING_ENGINES[name].installed]
    if not engines:
        raise click.ClickException("nothing to measure; pip install 'birchbark[bench-train]'")
    shapes = {kind: shape(place / "model", r) for kind, r in workloads.requests.items()}
    cores = sorted(os.sched_getaffinity(0))
    where = (str(place / "model"), ",".join(map(str, cores)))
    children = {name: Child(name, *where, module="training_worker") for name in engines}
    figures = {
        "machine": machine(),
        "cores": len(cores),
        "torch": version("torch"),
        "source": workloads.source,
        "missing": [name for name in wanted if name not in engines],
        "versions": {name: TRAINING_ENGINES[name].version for name in engines},
        "workloads": shapes,
        "losses": {kind: losses(children, path, shapes[kind]) for kind, path in files.items()},
        "times": in_turns(children, files, rounds),
    }
    for child in children.values():
        child.end()
    (place / "figures.json").write_text(json.dumps(figures))
    table = report(figures)
    if output:
        output.write_text(table)
    else:
        click.echo(table, nl=False)


def write_pairs(place: Path, kind: str, requests: Requests) -> Path:
    """The pairs as a file to train on; every other one is called relevant."""
    path = place / f"{kind}.jsonl"
    pairs = [(query, text) for query, texts in requests for text in texts]
    with path.open("w") as file:
        for number, (query, text) in enumerate(pairs):
            row = {"query": query, "text": text, "label": number % 2}
            file.write(json.dumps(row) + "\n")
    return path


def shape(model: Path, requests: Requests) -> Figures:
    """Number of pairs, mean tokens, and what they come to, padded in batches by chance."""
    from birchbark.checkpoint.reader import Checkpoint
    from birchbark.checkpoint.tokenizer import Pieces

    pieces = Pieces(Checkpoint.open(model))
    lengths: list[int] = []
    for query, texts in requests:
        head, *others = pieces.encode([query, *texts])
        room = LONGEST - pieces.extra_pair
        lengths += [min(len(head) + len(other), room) + pieces.extra_pair for other in others]
    drawn = np.random.default_rng(SEED).permutation(lengths)
    batches = [drawn[start : start + BATCH] for start in range(0, len(drawn), BATCH)]
    padded = sum(len(batch) * int(batch.max()) for batch in batches)
    count = len(lengths)
    return {"pairs": count, "tokens": sum(lengths) / count, "padded": padded / count}


def losses(children: Mapping[str, Child], pairs: Path, of: Figures) -> dict[str, list[float]]:
    """Engine → losses of the first steps, in float32, without dropout, from the same batches."""
    if OURS not in children or BASE not in children:
        return {}
    say(f"losses of {pairs.stem}")
    request = {"pairs": str(pairs), "dropout": 0.0}
    request["steps"] = min(CHECKED, max(1, of["pairs"] // BATCH))  # whole batches alone
    ours = children[OURS].ask(**request)
    theirs = children[BASE].ask(**request, order=ours["order"])
    return {OURS: ours["losses"], BASE: theirs["losses"]}


def in_turns(children: Mapping[str, Child], files: Mapping[str, Path], rounds: int) -> Figures:
    """Workload → engine → seconds of each round. One round more warms up."""
    found: Figures = {kind: {name: [] for name in children} for kind in files}
    for number in range(rounds + 1):
        for kind, pairs in files.items():
            say(f"round {number} of {rounds}, workload {kind}")
            for name, child in children.items():
                answer = child.ask(pairs=str(pairs), steps=None if number else WARM)
                if number:
                    found[kind][name].append(answer["seconds"])
    return found


if __name__ == "__main__":
    main()
