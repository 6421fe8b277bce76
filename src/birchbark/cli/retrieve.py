"""`birchbark retrieve`: queries become a first-stage run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark.cli.chosen import check_output, load_queries, open_engine
from birchbark.cli.options import FILE, first_stage_options, query_options
from birchbark.cli.talk import progress, say
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.pipeline.dense import DenseEngine
    from birchbark.records import Query, Ranking
    from birchbark.retrieve.engine import IndexEngine


@click.command(
    epilog="Examples: birchbark retrieve articles.index --queries q.tsv --rm3 --output rm3.run; "
    "birchbark retrieve articles.index --queries q.tsv --first-stage dense --output dense.run",
    short_help="Rank by BM25, tf-idf or vectors, with RM3 if asked.",
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
    help="TSV: query_id, share of all documents that are candidates, the query after expansion.",
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
    """Rank the documents of INDEX for each query, by BM25, tf-idf or the vectors that it keeps."""
    from birchbark.artifact import new_file
    from birchbark.collection.runs import write_run
    from birchbark.index.reader import Index
    from birchbark.records import Run
    from birchbark.retrieve.engine import IndexEngine

    check_output(output, tag)
    if report:
        check_output(report, None)
    asked = load_queries(queries, topic_fields, encoding)
    engine = open_engine(Index(index), **first_stage_choices)
    if isinstance(engine, IndexEngine):
        rankings, lines = _by_terms(engine, asked, depth, weighted, bool(report))
    elif weighted:
        raise InputError("--weighted gives terms, and text is needed to find what is near")
    else:
        rankings, lines = _by_vectors(engine, asked, depth, bool(report))
    run = Run(rankings, tag or engine.name)
    write_run(run, output)
    if report:
        with new_file(report) as out:
            out.writelines(lines)
    empty = [query_id for query_id, ranking in run.rankings.items() if not len(ranking)]
    say(f"ranked {sum(map(len, run.rankings.values())):,} documents for {len(asked):,} queries")
    if empty:
        say(f"  note: {len(empty)} queries matched nothing: {', '.join(empty[:5])}")


def _by_terms(
    engine: IndexEngine, asked: Sequence[Query], depth: int, weighted: bool, report: bool
) -> tuple[dict[str, Ranking], list[str]]:
    """The rankings, and a line of the report for each query."""
    from birchbark.retrieve.first_stage import expanded_query, match_ratio, rank_expanded
    from birchbark.retrieve.query import format_weighted, parse_weighted, query_terms

    index, stage = engine.index, engine.stage
    rankings, lines, unexpanded, short = {}, [], 0, []
    with progress("retrieving", len(asked)) as advance:
        for query in asked:
            given = parse_weighted(query.text) if weighted else None
            weights = query_terms(index.analyzer, query.text) if given is None else given
            expanded = expanded_query(index, weights, stage)
            unexpanded += bool(stage.expansion) and expanded.keys() == weights.keys()
            short += [query.query_id] * ((stage.match.minimum or 0) > len(weights))
            rankings[query.query_id] = rank_expanded(index, expanded, weights, stage, depth)
            if report:
                ratio = match_ratio(index, weights, stage)
                lines.append(f"{query.query_id}\t{ratio:.6f}\t{format_weighted(expanded)}\n")
            advance(1)
    if unexpanded:
        say(f"note: RM3 added no term to {unexpanded} queries (see --rm3-max-df)")
    if short:
        say(f"note: {len(short)} queries have fewer terms than --match wants: {short[0]}, …")
    return rankings, lines


def _by_vectors(
    engine: DenseEngine, asked: Sequence[Query], depth: int, report: bool
) -> tuple[dict[str, Ranking], list[str]]:
    """As `_by_terms`, of an engine that looks for near vectors."""
    rankings, lines = {}, []
    with progress("retrieving", len(asked)) as advance:
        for query in asked:
            rankings[query.query_id] = engine.rank(query.text, depth)
            if report:
                ratio = engine.match_ratio(query.text, depth)
                lines.append(f"{query.query_id}\t{ratio:.6f}\t{query.text}\n")
            advance(1)
    return rankings, lines
