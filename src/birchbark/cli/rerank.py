"""`birchbark rerank`: a run is ranked anew by the evidence that BERT finds."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from birchbark.cli.chosen import check_output, keeping_scores, load_queries, rankers
from birchbark.cli.options import FILE, query_options, ranker_options
from birchbark.cli.talk import progress, say, tell_work
from birchbark.errors import InputError


@click.command(
    epilog="Example: birchbark rerank articles.index --run rm3.run --queries queries.tsv "
    "--output bert.run",
    short_help="Re-rank a run by BERT.",
)
@click.argument("index", type=FILE)
@click.option("--run", "run_file", required=True, type=FILE, help="The run to re-rank.")
@query_options
@click.option("--output", required=True, type=FILE, help="The new run.")
@ranker_options
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Rank only the K best of each query; what cannot be among them is not scored.  "
    "[default: all]",
)
@click.option(
    "--report",
    type=FILE,
    help="TSV: for each query how many candidates were settled, pairs scored, tokens left unread.",
)
@click.option("--tag", help="Names the run.  [default: the old one, + and the kind of model]")
def command(
    index: Path,
    run_file: Path,
    queries: Path,
    topic_fields: tuple[str, ...],
    encoding: str,
    output: Path,
    top: int | None,
    report: Path | None,
    tag: str | None,
    scores: Path | None,
    **ranker_choices: Any,
) -> None:
    """Re-rank a run over INDEX: score = a·first stage + (1 - a)·evidence of the segments.

    Candidates below --depth keep their order, under the re-ranked ones. With --scores an
    interrupted run goes on where it was, and other weights, depths and aggregations need BERT only
    for segments that were not scored yet.
    """
    from birchbark.artifact import new_file
    from birchbark.collection.runs import read_run, write_run
    from birchbark.index.reader import Index
    from birchbark.pipeline.answer import Work
    from birchbark.pipeline.rerank import rerank

    check_output(output, tag)
    if report:
        check_output(report, None)
        if report.absolute() == output.absolute():
            raise InputError("--report and --output are one file", where=str(report))
    opened, asked = Index(index), load_queries(queries, topic_fields, encoding)
    run, chosen = read_run(run_file), rankers(**ranker_choices)
    with keeping_scores(chosen, scores) as scoring:
        works: dict[str, Work] = {}
        with progress("scoring", len(asked)) as advance:

            def done(query_id: str, work: Work) -> None:
                works[query_id] = work
                advance(1)

            ranked = rerank(opened, run, asked, scoring, top=top, tag=tag, report=done)
        write_run(ranked, output)
    if report:
        names = [field.name for field in fields(Work)]
        with new_file(report) as out:
            out.write("\t".join(["query_id", *names]) + "\n")
            for query_id, one in works.items():
                values = [str(getattr(one, name)).lower() for name in names]
                out.write("\t".join([query_id, *values]) + "\n")
    work = sum(works.values(), Work())
    documents = sum(len(ranking.head(chosen[0].depth)) for ranking in run.rankings.values())
    names = [one.name for r in chosen for one in (r.scorer, r.duo and r.duo.duo) if one]
    say(
        f"re-ranked {documents:,} documents for {len(run.rankings):,} queries "
        f"by {', then '.join(names)}, {work.pairs:,} pairs of query and segment"
        + (f", {work.comparisons:,} comparisons" if work.comparisons else "")
    )
    tell_work(work, opened)
