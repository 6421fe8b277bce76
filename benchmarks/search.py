"""How good and how fast is a search, from the query to hits with evidence?

    python -m benchmarks.search --output benchmarks/RESULTS-SEARCH.md

Ways to search (search_rows.py) are compared on four test collections, their times on one of them
(TIME), beside sentence-transformers and FlashRank. Each part writes its figures to
benchmarks/search-figures, and the report is made from those of all parts, as far as they are of the
present models.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.children import DATA
from benchmarks.search_parts import PARTS, Benchmark
from benchmarks.search_report import report
from benchmarks.search_times import FEWEST

FOLDER = click.Path(path_type=Path)


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
    "--queries",
    default=100,
    show_default=True,
    help="Queries per collection whose quality is measured, a random sample.",
)
@click.option("--data", type=FOLDER, default=DATA, show_default=True, help="Folder of collections.")
@click.option("--cache", type=FOLDER, default="bench-work/search", show_default=True)
@click.option("--figures", type=FOLDER, default="benchmarks/search-figures", show_default=True)
@click.option(
    "--peers-python",
    default=sys.executable,
    help="Python of the environment with sentence-transformers and FlashRank.  [default: this one]",
)
@click.option("--output", type=FOLDER, help="Markdown.  [default: stdout]")
def main(
    parts: Sequence[str],
    seconds: float,
    queries: int,
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
        queries,
        peers_python,
    )
    for part in parts:
        if part != "none":
            benchmark.run(part)
    text = report(benchmark.figures())
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text)


if __name__ == "__main__":
    main()
