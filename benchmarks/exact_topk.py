"""How many scores does exact top-k re-ranking save, and is it exact?

    python -m benchmarks.exact_topk --data ../shared/data/time

For each first-stage weight a, segment weights, scale and k, all queries are ranked with the same
stored scores: first in full, then skipping segments that cannot affect the best k documents. The
rankings must be equal, or the benchmark fails. The share of pairs is the number of query–segment
pairs scored, divided by the number of all pairs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import click

from benchmarks.children import DATA
from birchbark import (
    Index,
    Query,
    Ranker,
    Run,
    build_index,
    defaults,
    load_scorer,
    rank_queries,
    rerank,
)
from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.queries import read_queries
from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.pipeline.answers.answer import SearchStats
from birchbark.score.scorer import Scorer
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.store import ScoreStore

WEIGHTS = ((1.0,), (1.0, 0.5, 0.25))
FIRST_STAGE = tuple(i / 10 for i in range(1, 10))


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA / "time", show_default=True)
@click.option("--model", default=defaults.MODEL, show_default=True)
@click.option(
    "--scores",
    type=click.Path(path_type=Path),
    help="Score store to use.  [default: a temporary one]",
)
@click.option("--depth", default=100, show_default=True)
@click.option("--top", "tops", multiple=True, type=int, default=(10, 20), show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Markdown.  [default: stdout]")
def main(
    data: Path,
    model: str,
    scores: Path | None,
    depth: int,
    tops: Sequence[int],
    output: Path | None,
) -> None:
    """Compare exact top-k with full re-ranking of a collection."""
    queries = read_queries(data / "queries.tsv")
    scorer = load_scorer(model)
    with (
        tempfile.TemporaryDirectory() as folder,
        ScoreStore(scores or Path(folder) / "scores", scorer) as store,
    ):
        documents = read_collection(str(data / "corpus.jsonl"), Intake())
        index = build_index(documents, Path(folder) / "index")
        first = rank_queries(index, queries, depth=depth)
        cached = CachedScorer(scorer, store)
        rows = list(_rows(index, first, queries, cached, tops))
    head = "<!-- Made by benchmarks/exact_topk.py; do not edit. -->\n"
    head += f"# Exact top-k: collection {data.name.upper()}, {len(queries)} queries, "
    head += f"{depth} candidates, {scorer.name}"
    text = "\n".join([head, "", *_table(rows, tops)]) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text)


def _rows(
    index: Index, first: Run, queries: Sequence[Query], scorer: Scorer, tops: Sequence[int]
) -> Iterator[tuple[Scale, tuple[float, ...], float, list[float]]]:
    settings = list(product((Scale.MAX, Scale.RAW), WEIGHTS, FIRST_STAGE))
    with click.progressbar(settings, label="rankings", file=sys.stderr) as bar:
        for scale, weights, a in bar:
            ranker = Ranker(scorer, aggregation=Top(weights), interpolation=Interpolation(a, scale))
            full, all_stats = _rank(index, first, queries, ranker, None)
            shares = []
            for top in tops:
                best, stats = _rank(index, first, queries, ranker, top)
                if not stats.exact or best.rankings != full.head(top).rankings:
                    raise SystemExit(f"not exact: {scale} {weights} a={a} top {top}")
                shares.append(stats.pairs / all_stats.pairs)
            yield scale, weights, a, shares


def _rank(
    index: Index, first: Run, queries: Sequence[Query], ranker: Ranker, top: int | None
) -> tuple[Run, SearchStats]:
    totals = [SearchStats()]
    run = rerank(
        index,
        first,
        queries,
        ranker,
        top=top,
        tag="t",
        on_query=lambda query: totals.append(totals.pop() + query.stats),
    )
    return run, totals[0]


def _table(
    rows: Sequence[tuple[Scale, tuple[float, ...], float, list[float]]], tops: Sequence[int]
) -> Iterator[str]:
    yield f"Every ranking equals the full one ({len(rows) * len(tops)} comparisons). Share of pairs"
    yield "of query and segment that BERT had to score:"
    yield ""
    yield "| first stage | w | top | " + " | ".join(f"a = {a:.1f}" for a in FIRST_STAGE) + " |"
    yield "| --- | --- | --- |" + " --- |" * len(FIRST_STAGE)
    for (scale, weights), (i, top) in product(
        product((Scale.MAX, Scale.RAW), WEIGHTS), enumerate(tops)
    ):
        column = [shares[i] for s, w, _, shares in rows if (s, w) == (scale, weights)]
        cells = " | ".join(f"{share:.0%}" for share in column)
        name = "÷ highest" if scale is Scale.MAX else "raw"
        yield f"| {name} | {', '.join(f'{w:g}' for w in weights)} | {top} | {cells} |"


if __name__ == "__main__":
    main()
