"""`birchbark model`: what a model costs in each precision here, and how it is made smaller."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.options import FILE
from birchbark.cli.talk import progress, say
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.records import Segment
    from birchbark.score.check import Checked, Requests
    from birchbark.score.scorer import Scorer

QUERIES, SHORT, LONG, DOCUMENTS = 8, 40, 6, 400


@click.group(
    epilog="Example: birchbark model check all-MiniLM-L6-v2",
    short_help="Check a model's precisions here, or make it smaller.",
)
def command() -> None:
    """Look after models."""


@command.command(
    "pack",
    epilog="Example: birchbark model pack all-MiniLM-L6-v2 --bits 8 --to minilm-8bit",
    short_help="Store a model's weights in fewer bits.",
)
@click.argument("model")
@click.option(
    "--bits",
    type=click.Choice(["8", "16"]),
    required=True,
    help="8: int8 with a scale for each row; 16: float16.",
)
@click.option("--to", "target", type=FILE, required=True, help="Folder to make.")
def pack_command(model: str, bits: str, target: Path) -> None:
    """Write MODEL again with its matrices in fewer bits.

    They are widened when they are read and computed with in float32, as before: the file is
    smaller, the arithmetic is not worse.
    """
    from birchbark.score.model import locate
    from birchbark.score.packing import pack

    source = locate(model)
    with progress("packing"):
        pack(source, int(bits), target)
    before, after = (sum(f.stat().st_size for f in _weights(p)) for p in (source, target))
    say(f"{target}: {after / 1e6:.1f} MB of weights, {before / 1e6:.1f} MB before")


def _weights(directory: Path) -> list[Path]:
    return list(directory.rglob("model.safetensors"))


@command.command(
    "check",
    epilog="Example: birchbark model check all-MiniLM-L6-v2",
    short_help="Compare precisions: size, speed here, agreement.",
)
@click.argument("model")
@click.option("--threads", type=int, help="Processors for BERT.  [default: all]")
@click.option(
    "--pairs",
    type=FILE,
    metavar="FILE",
    help="Texts to score: lines of query TAB text.  [default: questions about Python, with "
    "sentences and windows of 150 words from its documentation]",
)
def check_command(model: str, threads: int | None, pairs: Path | None) -> None:
    """Show what MODEL costs in each precision, and how near its scores stay to fp32's.

    Weights in 16 and 8 bits are what `birchbark model pack` writes; int8 arithmetic is
    `--precision int8`. Agreement is Kendall's τ, the mean over queries, and the largest difference
    of scores between 0 and 1.
    """
    from birchbark.score.check import check
    from birchbark.score.model import load_scorer, locate

    directory = locate(model)
    scorer = load_scorer(directory, threads)
    workloads = {"pairs": read_pairs(pairs, scorer)} if pairs else _python_texts(scorer)
    with progress("checking", 4) as advance:
        rows = list(check(directory, workloads, threads, advance))
    _show(rows, list(workloads))


def read_pairs(path: Path, scorer: Scorer) -> Requests:
    """Queries with their texts, cut to what fits; InputError for a line without a tab."""
    found: dict[str, list[str]] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        query, tab, text = line.partition("\t")
        if not (tab and query.strip() and text.strip()):
            raise InputError(
                "not a pair", where=f"{path}:{number}", wanted="query TAB text", found=line[:40]
            )
        found.setdefault(query, []).append(text)
    if not found:
        raise InputError("no pairs", where=str(path))
    return [(query, _fitting(scorer, query, texts)) for query, texts in found.items()]


def _fitting(scorer: Scorer, query: str, texts: list[str]) -> list[str]:
    """`texts`, each up to where the model's room ends."""
    from birchbark.records import Segment
    from birchbark.segment.fit import fit

    whole = [Segment("", 0, len(text), text) for text in texts]
    return [next(iter(fit([one], scorer.room(query), scorer.spans))).text for one in whole]


def _python_texts(scorer: Scorer) -> dict[str, Requests]:
    """Sentences and windows of this Python's documentation, the same ones each time."""
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.collection.pydocs import pydocs_queries
    from birchbark.segment.sentences import sentences
    from birchbark.segment.windows import Windows

    chance = random.Random(0)
    queries = [query.text for query in pydocs_queries()[:QUERIES]]
    documents = list(read_collection("pydocs", Intake()))
    drawn = chance.sample(documents, len(documents))
    short = [s for d in drawn[:DOCUMENTS] for s in sentences(d)]
    long = [s for d in drawn if len(d.text.split()) > 150 for s in list(Windows(150, 0)(d))[:1]]

    def dealt(segments: list[Segment], count: int) -> Requests:
        texts = list(dict.fromkeys(s.text.strip() for s in segments if s.text.strip()))
        return [
            (query, _fitting(scorer, query, texts[i * count : (i + 1) * count]))
            for i, query in enumerate(queries)
        ]

    return {"short": dealt(short, SHORT), "long": dealt(long, LONG)}


def _show(rows: list[Checked], workloads: list[str]) -> None:
    from rich import box
    from rich.table import Table

    from birchbark.cli.tables import console

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("precision")
    names = ["MB", *(f"{name}, pairs/s" for name in workloads), "τ to fp32", "largest difference"]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        speeds = [f"{row.speed[name]:.1f}" for name in workloads]
        table.add_row(
            row.name, f"{row.megabytes:.1f}", *speeds, f"{row.tau:.4f}", f"{row.difference:.6f}"
        )
    console().print(table)
