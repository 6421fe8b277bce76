"""`birchbark model check`: how much faster, smaller and less exact are lower precisions?"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.console import notify, print_json, progress, report_intake
from birchbark.cli.options import PATH, device_option, json_option, option, threads_option

if TYPE_CHECKING:
    from birchbark.records import Segment
    from birchbark.score.precision_check import PrecisionResult, Requests
    from birchbark.score.scorer import Scorer

QUERIES = 8
SHORT_TEXTS, LONG_TEXTS = 40, 6  # per query
DOCUMENTS = 400  # number of documents that the short texts are taken from
WINDOW = 150  # words of a long text
HIGHEST = 999_999_999  # grade of a pair: any that can be read


@click.command(
    "check",
    epilog="Example: birchbark model check all-MiniLM-L6-v2; on a GPU: birchbark model check "
    "all-MiniLM-L6-v2 --device cuda",
    short_help="Compare precisions by size, speed and agreement.",
)
@click.argument("model")
@device_option
@threads_option
@option(
    "--pairs",
    type=PATH,
    metavar="FILE",
    help="File of pairs to score, as `birchbark pairs` writes it; labels do not matter.  [default: "
    f"questions about Python, with sentences and windows of {WINDOW} words of its documentation]",
)
@json_option
def check(model: str, device: str, threads: int | None, pairs: Path | None, as_json: bool) -> None:
    """Compare MODEL's precisions by size, speed on this machine, and agreement with fp32.

    Weights in 16 and 8 bits are written by `birchbark model quantize`; int8 arithmetic is
    `--precision int8`, on a GPU bf16 and fp16. Agreement is measured by Kendall's τ-b, averaged
    over queries, and by the largest difference between two scores, which are between 0 and 1.
    """
    from birchbark.checkpoint.locate import locate
    from birchbark.device.torch_session import session_factory
    from birchbark.score.load_scorer import load_scorer
    from birchbark.score.precision_check import check_precisions

    session, directory = session_factory(device), locate(model)
    scorer = load_scorer(directory, threads)
    workloads = {"pairs": _pairs(pairs, scorer)} if pairs else _python_texts(scorer)
    with progress("checking", 6) as advance:
        rows = list(check_precisions(directory, workloads, threads, advance, session))
    if as_json:
        print_json(list(map(_fields, rows)))
    else:
        _print_table(rows, list(workloads))


def _pairs(path: Path, scorer: Scorer) -> Requests:
    """Return the queries of a file of pairs with their texts, truncated to the model's input."""
    from birchbark.collection.parsing.intake import Intake
    from birchbark.pairs.read import read_pairs

    intake, texts_of = Intake(), dict[str, list[str]]()
    for pair in read_pairs(path, intake, highest=HIGHEST, unjudged=0):
        texts_of.setdefault(pair.query, []).append(pair.text)
    report_intake(intake)
    return [(query, _truncated(scorer, query, texts)) for query, texts in texts_of.items()]


def _truncated(scorer: Scorer, query: str, texts: list[str]) -> list[str]:
    """Return `texts`, each truncated to the token budget that `query` leaves."""
    from birchbark.records import Segment
    from birchbark.segment.split_long import split_long

    segments = [Segment("", 0, len(text), text) for text in texts]
    split = split_long(segments, scorer.token_budget(query), scorer.encode, scorer.spans)
    if too_long := sum(len(chunks) > 1 for chunks in split):
        notify(f"{query!r}: {too_long:,} of {len(texts):,} texts are too long, and truncated")
    return [chunks[0][0].text for chunks in split]


def _python_texts(scorer: Scorer) -> dict[str, Requests]:
    """Return workloads of short texts (sentences) and long texts (windows) from Python's docs.

    The same version of Python always gives the same texts.
    """
    from birchbark.collection.documents import read_collection
    from birchbark.collection.parsing.intake import Intake
    from birchbark.collection.pydocs import pydocs_queries
    from birchbark.segment.sentences import sentences
    from birchbark.segment.windows import Windows

    queries = [query.text for query in pydocs_queries()[:QUERIES]]
    documents = list(read_collection("pydocs", Intake()))
    documents = random.Random(0).sample(documents, len(documents))
    short = [s for d in documents[:DOCUMENTS] for s in sentences(d)]
    first_window = Windows(WINDOW, 0)
    long = [s for d in documents if len(d.text.split()) > WINDOW for s in first_window(d)[:1]]

    def distribute(segments: list[Segment], count: int) -> Requests:
        texts = list(dict.fromkeys(s.text.strip() for s in segments if s.text.strip()))
        return [
            (query, _truncated(scorer, query, texts[i * count : (i + 1) * count]))
            for i, query in enumerate(queries)
        ]

    return {"short": distribute(short, SHORT_TEXTS), "long": distribute(long, LONG_TEXTS)}


def _fields(row: PrecisionResult) -> dict[str, object]:
    return {
        "precision": row.name,
        "megabytes": row.megabytes,
        "pairs_per_second": row.speed,
        "tau": row.tau,
        "largest_difference": row.difference,
    }


def _print_table(rows: list[PrecisionResult], workloads: list[str]) -> None:
    from birchbark.show.terminal import console, plain_table

    table = plain_table("precision")
    names = ["MB", *(f"{name}, pairs/s" for name in workloads), "τ to fp32", "largest difference"]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        speeds = [f"{row.speed[name]:.1f}" for name in workloads]
        table.add_row(
            row.name, f"{row.megabytes:.1f}", *speeds, f"{row.tau:.4f}", f"{row.difference:.6f}"
        )
    console().print(table)
