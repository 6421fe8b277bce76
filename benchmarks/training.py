"""How fast does birchbark train, compared with the Trainer of transformers?

    python -m benchmarks.training --output benchmarks/RESULTS-TRAINING.md

Each training loop starts from the same weights and uses the same pairs, in a separate process, on
all cores. Rounds are interleaved, one process at a time, so that other load on the machine affects
all equally. Before that, both train on the same batches without dropout, to verify that their
losses agree.
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

from benchmarks.children import DATA, Child, say
from benchmarks.first_stage import machine
from benchmarks.score import FOLDER
from benchmarks.score_model import write_model
from benchmarks.score_pairs import Requests, load_workloads
from benchmarks.training_engines import BASE, BATCH, MAX_TOKENS, OURS, SEED, TRAINING_ENGINES
from benchmarks.training_report import report

Figures = dict[str, Any]
WARM, CHECKED = 2, 5  # steps


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option(
    "--share", default=1.0, show_default=True, help="Share of the texts to use; less is faster."
)
@click.option("--seed", default=1, show_default=True, help="Seed that draws the texts.")
@click.option("--data", type=FOLDER, default=DATA, show_default=True, help="Folder of collections.")
@click.option("--work", type=FOLDER, default="bench-work", show_default=True)
@click.option(
    "--engine",
    "names",
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
    names: Sequence[str],
    output: Path | None,
) -> None:
    """Measure how fast birchbark and transformers train."""
    requested = [name for name in TRAINING_ENGINES if name in (names or TRAINING_ENGINES)]
    engines = [name for name in requested if TRAINING_ENGINES[name].installed]
    if not engines:
        raise click.ClickException("nothing to measure; pip install 'birchbark[bench]'")
    folder = (work / "training").resolve()
    write_model(folder / "model")
    workloads = load_workloads(data, share, seed)
    files = {kind: write_pairs(folder, kind, r) for kind, r in workloads.requests.items()}
    shapes = {kind: shape(folder / "model", r) for kind, r in workloads.requests.items()}
    cores = sorted(os.sched_getaffinity(0))
    arguments = (str(folder / "model"), ",".join(map(str, cores)))
    children = {name: Child(name, *arguments, module="training_worker") for name in engines}
    figures = {
        "machine": machine(),
        "cores": len(cores),
        "torch": version("torch"),
        "source": workloads.source,
        "missing": [name for name in requested if name not in engines],
        "versions": {name: TRAINING_ENGINES[name].version for name in engines},
        "workloads": shapes,
        "losses": {kind: losses(children, path, shapes[kind]) for kind, path in files.items()},
        "times": run_rounds(children, files, rounds),
    }
    for child in children.values():
        child.end()
    (folder / "figures.json").write_text(json.dumps(figures))
    table = report(figures)
    if output:
        output.write_text(table)
    else:
        click.echo(table, nl=False)


def write_pairs(folder: Path, kind: str, requests: Requests) -> Path:
    """Write the pairs as a training file in which every other pair is relevant."""
    path = folder / f"{kind}.jsonl"
    pairs = [(query, text) for query, texts in requests for text in texts]
    with path.open("w") as file:
        for number, (query, text) in enumerate(pairs):
            row = {"query": query, "text": text, "label": number % 2}
            file.write(json.dumps(row) + "\n")
    return path


def shape(model: Path, requests: Requests) -> Figures:
    """Return the number of pairs, and their mean length in tokens without and with padding."""
    from birchbark.checkpoint.checkpoint import Checkpoint
    from birchbark.checkpoint.tokenizer import CheckpointTokenizer

    token_ids = CheckpointTokenizer(Checkpoint.open(model))
    lengths: list[int] = []
    for query, texts in requests:
        head, *others = token_ids.encode([query, *texts])
        token_budget = MAX_TOKENS - token_ids.pair_overhead
        lengths += [
            min(len(head) + len(other), token_budget) + token_ids.pair_overhead for other in others
        ]
    drawn = np.random.default_rng(SEED).permutation(lengths)
    batches = [drawn[start : start + BATCH] for start in range(0, len(drawn), BATCH)]
    padded = sum(len(batch) * int(batch.max()) for batch in batches)
    count = len(lengths)
    return {"pairs": count, "tokens": sum(lengths) / count, "padded": padded / count}


def losses(children: Mapping[str, Child], pairs: Path, workload: Figures) -> dict[str, list[float]]:
    """Return engine → losses of the first steps in float32, without dropout, on equal batches."""
    if OURS not in children or BASE not in children:
        return {}
    say(f"losses of {pairs.stem}")
    request = {"pairs": str(pairs), "dropout": 0.0}
    request["steps"] = min(CHECKED, max(1, workload["pairs"] // BATCH))  # only full batches
    ours = children[OURS].ask(**request)
    theirs = children[BASE].ask(**request, order=ours["order"])
    return {OURS: ours["losses"], BASE: theirs["losses"]}


def run_rounds(children: Mapping[str, Child], files: Mapping[str, Path], rounds: int) -> Figures:
    """Return workload → engine → seconds per round, after a warm-up round."""
    times: Figures = {kind: {name: [] for name in children} for kind in files}
    for number in range(rounds + 1):
        for kind, pairs in files.items():
            say(f"round {number} of {rounds}, workload {kind}")
            for name, child in children.items():
                answer = child.ask(pairs=str(pairs), steps=None if number else WARM)
                if number:
                    times[kind][name].append(answer["seconds"])
    return times


if __name__ == "__main__":
    main()
