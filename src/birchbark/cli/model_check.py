"""`birchbark model check`: what does a model cost in each precision, and how near is it to fp32?"""

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


@click.command(
    "check",
    epilog="Example: birchbark model check all-MiniLM-L6-v2",
    short_help="Compare precisions: size, speed here, agreement.",
)
@click.argument("model")
@click.option("--threads", type=click.IntRange(1), help="Processors for BERT.  [default: all]")
@click.option(
    "--pairs",
    type=FILE,
    metavar="FILE",
    help="Texts to score: lines of query TAB text.  [default: questions about Python, with "
    "sentences and windows of 150 words from its documentation]",
)
def check(model: str, threads: int | None, pairs: Path | None) -> None:
    """Show what MODEL costs in each precision, and how near its scores stay to fp32's.

    Weights in 16 and 8 bits are what `birchbark model pack` writes; int8 arithmetic is
    `--precision int8`. Agreement is Kendall's τ, the mean over queries, and the largest difference
    of scores between 0 and 1.
    """
    from birchbark.checkpoint.named import locate
    from birchbark.score.check import compared
    from birchbark.score.model import load_scorer

    directory = locate(model)
    scorer = load_scorer(directory, threads)
    workloads = {"pairs": read_pairs(pairs, scorer)} if pairs else _python_texts(scorer)
    with progress("checking", 4) as advance:
        rows = list(compared(directory, workloads, threads, advance))
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
    fitted = fit(whole, scorer.room(query), scorer.encode, scorer.spans)
    if cut := sum(len(chunks) > 1 for chunks in fitted):
        say(f"{query!r}: {cut:,} of {len(texts):,} texts do not fit; their beginning is scored")
    return [chunks[0][0].text for chunks in fitted]


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
