"""How much memory and time does a training on a million pairs need before its first step?

    python -m benchmarks.training_size --output benchmarks/RESULTS-TRAINING-SIZE.md

Each training loop reads the same TSV file, with the same model, in a process of its own: once with
empty caches, once again, and once with a thousand pairs, which shows the memory of model and
libraries.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.children import say
from benchmarks.first_stage import machine
from benchmarks.report import notes
from benchmarks.score import FOLDER
from benchmarks.score_model import write_model
from benchmarks.text import load_pool, texts
from benchmarks.training_size_loops import BATCH, LOOPS, MAX_TOKENS, STEPS

Figures = dict[str, Any]
ROOT = Path(__file__).parents[1]
FEW = 1000
PER_QUERY = 10
QUERY_WORDS, TEXT_WORDS = 6, 60
MEMORY_TARGET, START_TARGET = 1.0, 10.0  # GB beside the model; seconds with cached tokens


@click.command()
@click.option("--pairs", default=1_000_000, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Seed that draws the texts.")
@click.option("--source", type=FOLDER, help="Folder of prose.  [default: this Python's docs]")
@click.option("--work", type=FOLDER, default="bench-work", show_default=True)
@click.option("--output", type=FOLDER, help="Markdown.  [default: stdout]")
def main(pairs: int, seed: int, source: Path | None, work: Path, output: Path | None) -> None:
    """Measure the start of a training on many pairs."""
    folder = (work / "training-size").resolve()
    write_model(folder / "model")
    files = {
        count: write_pairs(folder / f"{count}.tsv", count, seed, source) for count in (FEW, pairs)
    }
    installed = [name for name, loop in LOOPS.items() if loop.installed]
    if not installed:
        raise click.ClickException("nothing to measure; pip install 'birchbark[bench]'")
    rows = {}
    for name in installed:
        caches = folder / "caches"
        shutil.rmtree(caches, ignore_errors=True)
        say(f"{name}: {FEW:,} pairs")
        few = run(name, folder / "model", files[FEW], caches)
        say(f"{name}: {pairs:,} pairs, for the first time")
        first = run(name, folder / "model", files[pairs], caches)
        say(f"{name}: {pairs:,} pairs, again")
        again = run(name, folder / "model", files[pairs], caches)
        rows[name] = {"few": few, "first": first, "again": again}
    figures = {
        "machine": machine(),
        "pairs": pairs,
        "megabytes": files[pairs].stat().st_size / 1e6,
        "versions": {name: LOOPS[name].version for name in installed},
        "missing": [name for name in LOOPS if name not in installed],
        "rows": rows,
    }
    (folder / "figures.json").write_text(json.dumps(figures))
    if output:
        output.write_text(report(figures))
    else:
        click.echo(report(figures), nl=False)


def write_pairs(path: Path, count: int, seed: int, source: Path | None) -> Path:
    """Write pairs as TSV with a header: the first text of each query is relevant."""
    if path.exists():
        return path
    say(f"writing {count:,} pairs")
    scratch = path.with_suffix(".tmp")
    with scratch.open("w", encoding="utf-8") as out:
        out.write("query\ttext\tlabel\n")
        query = ""
        for number, text in enumerate(texts(count, seed, load_pool(source))):
            words = text.split()
            if number % PER_QUERY == 0:
                query = f"{number} {' '.join(words[-QUERY_WORDS:])}"
            passage = " ".join(words[:TEXT_WORDS])
            out.write(f"{query}\t{passage}\t{int(number % PER_QUERY == 0)}\n")
    scratch.rename(path)
    return path


def run(name: str, model: Path, pairs: Path, caches: Path) -> Figures:
    """Return what one loop measures in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.training_size_loops", name, model, pairs, caches],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=False,
        env=os.environ | {"HF_HOME": str(caches), "HF_HUB_OFFLINE": "1"},
    )
    if done.returncode:
        raise click.ClickException(f"{name} failed; see its output above")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def report(figures: Figures) -> str:
    """Return the report in Markdown."""
    machine_, pairs = figures["machine"], figures["pairs"]
    lines = [
        "<!-- Made by benchmarks/training_size.py; do not edit. -->",
        f"# Training on {pairs:,} pairs",
        "",
        f"{machine_['processor']}, {machine_['cores']} cores, {machine_['memory_gb']} GB; Python "
        f"{machine_['python']}. A TSV file of {figures['megabytes']:,.0f} MB: queries of "
        f"{QUERY_WORDS + 1} words with {PER_QUERY} texts of {TEXT_WORDS} words, all distinct "
        "(benchmarks/text.py). Model: all-MiniLM-L6-v2's encoder with a random head of one logit, "
        f"batches of {BATCH}, {MAX_TOKENS} tokens per input, binary cross-entropy, float32.",
        "",
        *_table(figures["rows"], figures["versions"]),
        "",
        *_targets(figures["rows"]),
        "",
        *notes(figures, NOTES),
    ]
    return "\n".join(lines) + "\n"


def memory(row: Mapping[str, Figures], state: str) -> float:
    """Return the peak memory in GB beyond that with few pairs."""
    return float(row[state]["peak_gb"] - row["few"]["peak_gb"])


def _table(rows: Mapping[str, Any], versions: Mapping[str, str]) -> Iterator[str]:
    yield (
        "| loop | first step, first time, s | again, s | memory, first time, GB | again, GB "
        f"| pairs/s, {STEPS} steps |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, row in rows.items():
        cells = [
            f"{row['first']['first_step']:.1f}",
            f"{row['again']['first_step']:.1f}",
            f"{memory(row, 'first'):.2f}",
            f"{memory(row, 'again'):.2f}",
            f"{row['again']['pairs_per_second']:.1f}",
        ]
        yield f"| {name} ({versions[name]}) | " + " | ".join(cells) + " |"


def _targets(rows: Mapping[str, Any]) -> Sequence[str]:
    name = next(iter(LOOPS))
    if name not in rows:
        return ()
    measured = (
        ("memory beside the model, GB, at most", MEMORY_TARGET, memory(rows[name], "first")),
        ("first step, tokens stored, s, at most", START_TARGET, rows[name]["again"]["first_step"]),
    )
    return (
        f"| target, {name} | | measured | |",
        "| --- | ---: | ---: | --- |",
        *(
            f"| {what} | {target:g} | {value:.2f} | {'met' if value <= target else 'missed'} |"
            for what, target, value in measured
        ),
    )


NOTES = """
The first step ends after its update of the weights; its time counts from the start of the process,
with imports. Memory is the largest resident size of the process, less that of the same training on
1,000 pairs; pages of mapped files are included, which the system can take back. Both peers read the
file with the library datasets, which keeps tables, and for the Trainer token ids, in files, too.
The Trainer maps the tokeniser over all pairs before; CrossEncoderTrainer tokenises each batch.
"""

if __name__ == "__main__":
    main()
