"""`birchbark retrieve`: queries become a first-stage run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from birchbark.cli.chosen import check_output, first_stage, load_queries
from birchbark.cli.options import FILE, first_stage_options, query_options
from birchbark.cli.talk import progress, say


@click.command(
    epilog="Example: birchbark retrieve articles.index --queries q.tsv --rm3 --output rm3.run",
    short_help="Rank by BM25 or tf-idf, with RM3 if asked.",
)
@click.argument("index", type=FILE)
@query_options
@click.option("--output", required=True, type=FILE, help="The run, in TREC form.")
@first_stage_options
@click.option("--depth", default=1000, show_default=True, help="Documents a query.")
@click.option(
    "--weighted", is_flag=True, help="Queries are index terms with weights: term^weight …"
)
@click.option(
    "--report",
    type=FILE,
    help="TSV: query_id, share of all documents that match, the query after expansion.",
)
@click.option("--tag", help="Names the run.  [default: the model, and +rm3]")
def command(
    index: Path,
    queries: Path,
    topic_fields: tuple[str, ...],
    encoding: str,
    output: Path,
    depth: int,
    weighted: bool,
    report: Path | None,
    tag: str | None,
    **first_stage_choices: Any,
) -> None:
    """Rank the documents of INDEX for each query, by BM25 or tf-idf."""
    from birchbark.artifact import new_file
    from birchbark.collection.runs import write_run
    from birchbark.index.reader import Index
    from birchbark.records import Run
    from birchbark.retrieve.first_stage import expanded_query, match_ratio, rank_expanded
    from birchbark.retrieve.query import format_weighted, parse_weighted, query_terms

    check_output(output, tag)
    if report:
        check_output(report, None)
    opened, asked = Index(index), load_queries(queries, topic_fields, encoding)
    stage = first_stage(**first_stage_choices)
    terms = {
        query.query_id: parse_weighted(query.text)
        if weighted
        else query_terms(opened.analyzer, query.text)
        for query in asked
    }
    rankings, lines, unexpanded = {}, [], 0
    with progress("retrieving", len(asked)) as advance:
        for query_id, weights in terms.items():
            expanded = expanded_query(opened, weights, stage)
            unexpanded += bool(stage.expansion) and expanded.keys() == weights.keys()
            rankings[query_id] = rank_expanded(opened, expanded, weights, stage, depth)
            if report:
                ratio = match_ratio(opened, weights, stage)
                lines.append(f"{query_id}\t{ratio:.6f}\t{format_weighted(expanded)}\n")
            advance(1)
    run = Run(rankings, tag or stage.name)
    write_run(run, output)
    if report:
        with new_file(report) as out:
            out.writelines(lines)
    empty = [query_id for query_id, ranking in run.rankings.items() if not len(ranking)]
    say(f"ranked {sum(map(len, run.rankings.values())):,} documents for {len(asked):,} queries")
    if unexpanded:
        say(f"  note: RM3 added no term to {unexpanded} queries (see --rm3-max-df)")
    if short := [q for q, w in terms.items() if (stage.match.minimum or 0) > len(w)]:
        say(f"  note: {len(short)} queries have fewer terms than --match wants: {short[0]}, …")
    if empty:
        say(f"  note: {len(empty)} queries matched nothing: {', '.join(empty[:5])}")
