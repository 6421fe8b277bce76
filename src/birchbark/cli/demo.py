"""`birchbark demo`: the main job, end to end, on this Python's own documentation."""

from __future__ import annotations

import time
from pathlib import Path

import click

from birchbark.cli.evaluate import compared
from birchbark.cli.options import DEFAULT_MODEL, FILE
from birchbark.cli.talk import counted, progress, say
from birchbark.errors import InputError

SHOWN = "q55"
DEPTH = 50
MARK = "DEMO"


@click.command(
    epilog="Example: birchbark demo --to birchbark-demo",
    short_help="Index, rank, evaluate, show evidence: this Python's documentation.",
)
@click.option(
    "--to",
    "directory",
    type=FILE,
    default=Path("birchbark-demo"),
    show_default=True,
    help="Folder for the index and the runs.",
)
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="As in rerank.")
def command(directory: Path, model: str) -> None:
    """Answer questions about Python from its own documentation, with BM25, RM3 and BERT.

    The questions were written and judged by hand; they come with the package.
    """
    from birchbark.artifact import new_file
    from birchbark.cli.tables import show_hits, show_results
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.collection.pydocs import pydocs_qrels, pydocs_queries
    from birchbark.collection.runs import write_run
    from birchbark.evaluate.measures import measure
    from birchbark.index.build import build_index
    from birchbark.pipeline.ranker import Ranker
    from birchbark.pipeline.rerank import rerank
    from birchbark.pipeline.search import search
    from birchbark.retrieve.engine import IndexEngine
    from birchbark.retrieve.first_stage import FirstStage, rank_queries
    from birchbark.retrieve.rm3 import RM3
    from birchbark.score.model import load_scorer

    started = time.perf_counter()
    mark = directory / MARK
    if directory.exists() and not mark.exists() and any(directory.iterdir()):
        raise InputError(
            "holds something else than a demo", where=str(directory), remedy="name another folder"
        )
    with new_file(mark) as out:
        out.write("birchbark demo writes in this folder, and replaces what it wrote before\n")
    ranker, expanded = Ranker(load_scorer(model), depth=DEPTH), FirstStage(expansion=RM3())
    with progress("indexing") as advance:
        documents = counted(read_collection("pydocs", Intake()), advance)
        index = build_index(documents, directory / "index", replace=True)
    say(
        f"Indexed {len(index):,} documents of this Python's standard library: {directory / 'index'}"
    )

    queries, qrels = pydocs_queries(), pydocs_qrels()
    with progress("BM25, RM3", 2 * len(queries)) as advance:
        bm25 = rank_queries(index, queries, advance=advance)
        rm3 = rank_queries(index, queries, expanded, advance=advance)
    with progress("BERT", len(queries)) as advance:
        bert = rerank(index, rm3, queries, ranker, report=lambda *_: advance(1))
    for run in (bm25, rm3, bert):
        write_run(run, directory / f"{run.tag}.run")
    say(
        f"Ranked {len(queries)} questions; evidence: {ranker.scorer.name}, the best sentences of "
        f"each one's first {DEPTH} candidates.\n"
    )

    results = [measure(qrels, run) for run in (bm25, rm3, bert)]
    show_results(results, compared(results, seed=0))
    shown = next(query for query in queries if query.query_id == SHOWN)
    click.echo(f"\n“{shown.text}”: the best hits, and the sentences that made them rank\n")
    show_hits(search(IndexEngine(index, expanded), shown.text, ranker, top=5).hits)
    say(f"\n{time.perf_counter() - started:.0f} s in all. Ask your own:")
    say(f'  birchbark search {directory / "index"} "wait until all workers are done"')
