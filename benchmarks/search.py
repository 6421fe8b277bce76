"""How good and how fast is a search, from the query to hits with evidence?

    python -m benchmarks.search --output benchmarks/RESULTS-SEARCH.md

The ways to search differ in what BERT reads (search_rows.py). Quality is measured on five test
collections, time on one of them (TIME), beside sentence-transformers and FlashRank. Each part
writes its figures to benchmarks/search-figures, and the report is made from those of all parts, as
far as they are of the present models. Scores for quality are kept in the cache: a killed run goes
on where it stopped. Times are measured without them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.children import ROOT
from benchmarks.search_parts import PARTS, Benchmark
from benchmarks.search_plot import plot
from benchmarks.search_report import report
from benchmarks.search_times import FEWEST

DATA = Path(os.environ.get("BIRCHBARK_DATA", ROOT.parent / "shared" / "data"))
FOLDER = click.Path(path_type=Path)
PLOT = "search.svg"


@click.command()
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice([*PARTS, "none"]),
    default=PARTS,
    help="Part to measure; repeat for several. Others are reported as they were measured before.  "
    "[default: all]",
)
@click.option(
    "--seconds",
    default=30.0,
    show_default=True,
    help=f"Time for a row, after which no further query is timed; {FEWEST} are in any case.",
)
@click.option(
    "--documents", default=1_000_000, show_default=True, help="Documents of the large index."
)
@click.option(
    "--queries",
    default=100,
    show_default=True,
    help="Queries per collection whose quality is measured, a random sample.",
)
@click.option(
    "--only-missing", is_flag=True, help="Leave out the quality of rows that have figures already."
)
@click.option("--data", type=FOLDER, default=DATA, show_default=True, help="Folder of collections.")
@click.option("--cache", type=FOLDER, default="bench-work/search", show_default=True)
@click.option("--figures", type=FOLDER, default="benchmarks/search-figures", show_default=True)
@click.option(
    "--peers-python",
    default=sys.executable,
    help="Python of the environment with sentence-transformers and FlashRank.  [default: this one]",
)
@click.option("--output", type=FOLDER, help="Markdown; the plot is beside it.  [default: stdout]")
def main(
    parts: Sequence[str],
    seconds: float,
    documents: int,
    queries: int,
    only_missing: bool,
    data: Path,
    cache: Path,
    figures: Path,
    peers_python: str,
    output: Path | None,
) -> None:
    """Measure quality and time of searches."""
    for folder in (cache, figures):
        folder.mkdir(parents=True, exist_ok=True)
    benchmark = Benchmark(
        data.resolve(),
        cache.resolve(),
        figures,
        seconds,
        documents,
        queries,
        peers_python,
        only_missing,
    )
    for part in parts:
        if part != "none":
            benchmark.run(part)
    measured = benchmark.figures()
    text = report(measured, PLOT)
    if output is None:
        click.echo(text, nl=False)
        return
    output.write_text(text)
    if drawing := plot(measured):
        output.with_name(PLOT).write_text(drawing)


if __name__ == "__main__":
    main()
