"""`birchbark demo`: how does the whole pipeline rank the documentation of Python?"""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click

from birchbark import defaults
from birchbark.cli.compare_runs import compare_to_first
from birchbark.cli.console import counted, notify, progress
from birchbark.cli.options import PATH, option
from birchbark.errors import InputError
from birchbark.show.plural import plural

SHOWN_QUERY = "q55"
DEPTH = 50
MARKER = "DEMO"  # file that marks a folder as created by the demo


@click.command(
    epilog="Example: birchbark demo --to birchbark-demo",
    short_help="Index, rank and evaluate this Python's documentation.",
)
@option(
    "--to",
    "directory",
    type=PATH,
    default=Path("birchbark-demo"),
    help="Folder for the index and the runs.",
)
def command(directory: Path) -> None:
    """Answer questions about Python from its documentation, with BM25, RM3 and BERT.

    The questions and their relevance judgments were written by hand and are part of the package.
    """
    from birchbark.collection.documents import read_collection
    from birchbark.collection.parsing.intake import Intake
    from birchbark.collection.pydocs import pydocs_qrels, pydocs_queries
    from birchbark.collection.runs import write_run
    from birchbark.evaluate.measures import measure
    from birchbark.index.build_index import build_index
    from birchbark.pipeline.rerank import rerank
    from birchbark.pipeline.search import search
    from birchbark.pipeline.settings.ranker import Ranker
    from birchbark.retrieve.engine import IndexEngine
    from birchbark.retrieve.first_stage import FirstStage, rank_queries
    from birchbark.retrieve.rm3 import RM3
    from birchbark.score.load_scorer import load_scorer
    from birchbark.show.terminal import show_hits, show_results

    started = time.perf_counter()
    _claim(directory)
    ranker, with_rm3 = Ranker(load_scorer(defaults.MODEL), depth=DEPTH), FirstStage(expansion=RM3())
    with progress("indexing") as advance:
        documents = counted(read_collection("pydocs", Intake()), advance)
        index = build_index(documents, directory / "index", replace=True)
    indexed = f"{plural(len(index), 'document')} of this Python's standard library"
    notify(f"Indexed {indexed}: {directory / 'index'}")

    queries, qrels = pydocs_queries(), pydocs_qrels()
    with progress("BM25, RM3", 2 * len(queries)) as advance:
        bm25 = rank_queries(index, queries, advance=advance)
        rm3 = rank_queries(index, queries, with_rm3, advance=advance)
    with progress("BERT", len(queries)) as advance:
        bert = rerank(index, rm3, queries, ranker, on_query=lambda _: advance(1))
    for run in (bm25, rm3, bert):
        write_run(run, directory / f"{run.tag}.run")
    notify(
        f"Ranked {len(queries)} questions; {ranker.scorer.name} scored the {ranker.unit} of the "
        f"first {DEPTH} candidates of each.\n"
    )

    results = [measure(qrels, run) for run in (bm25, rm3, bert)]
    show_results(results, compare_to_first(results, defaults.SEED))
    query = next(query for query in queries if query.query_id == SHOWN_QUERY)
    click.echo(f"\n“{query.text}”: the best hits, and the sentences that show what they say\n")
    answer = search(IndexEngine(index, with_rm3), query.text, ranker, top=5)
    show_hits(answer.hits, [ranker.scorer.kind])
    notify(f"\n{time.perf_counter() - started:.0f} s in total. Try a query of your own:")
    index_path = shlex.quote(str(directory / "index"))
    notify(f'  birchbark search {index_path} "wait until all workers are done"')


def _claim(directory: Path) -> None:
    """Mark `directory` as the demo's; raise InputError if it holds files of something else."""
    from birchbark.artifact import new_file

    marker = directory / MARKER
    if directory.exists() and not marker.exists() and any(directory.iterdir()):
        raise InputError(
            "was not created by the demo", where=str(directory), remedy="choose another folder"
        )
    with new_file(marker) as out:
        out.write("birchbark demo writes to this folder, and replaces its earlier output\n")
