"""`birchbark reword`: queries in other words, as weighted terms that `retrieve` searches for."""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.chosen import check_output, load_queries
from birchbark.cli.options import FILE, query_options
from birchbark.cli.talk import progress, say


@click.command(
    epilog="Example: birchbark reword articles.index --queries q.tsv --model adapted/model "
    "--output weighted.tsv; birchbark retrieve articles.index --queries weighted.tsv --weighted "
    "--output reworded.run",
    short_help="Put queries in other words, by a masked model.",
)
@click.argument("index", type=FILE)
@query_options
@click.option("--model", required=True, help="A masked language model (birchbark adapt).")
@click.option(
    "--count", type=click.IntRange(1), default=3, show_default=True, help="Rewordings a query."
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="What a rewording counts beside the query, times how near it is to it.",
)
@click.option("--output", required=True, type=FILE, help="TSV: query_id, term^weight …")
@click.option("--report", type=FILE, help="TSV: query_id, weight, rewording.")
def command(
    index: Path,
    queries: Path,
    topic_fields: tuple[str, ...],
    encoding: str,
    model: str,
    count: int,
    share: float,
    output: Path,
    report: Path | None,
) -> None:
    """Write each query with its rewordings as weighted terms of INDEX, for `retrieve --weighted`.

    In a rewording MODEL has put another word in the place of one. It counts as much as it is near
    to the query, by the cosine of the model's vectors.
    """
    from birchbark.artifact import new_file
    from birchbark.checkpoint.named import locate
    from birchbark.index.reader import Index
    from birchbark.retrieve.query import format_weighted, reworded_terms
    from birchbark.score.masked import MaskedModel
    from birchbark.score.rewording import check_rewording, reword

    check_output(output, None)
    if report:
        check_output(report, None)
    asked = load_queries(queries, topic_fields, encoding)
    analyzer = Index(index).analyzer
    masked = MaskedModel(locate(model))
    check_rewording(masked, asked)
    lines, told, fewer, empty = [], [], [], []
    with progress("rewording", len(asked)) as advance:
        for query in asked:
            found = reword(masked, query.text, analyzer.terms, count)
            weights = reworded_terms(analyzer, query.text, found, share)
            if weights:
                lines.append(f"{query.query_id}\t{format_weighted(weights)}\n")
            else:
                empty.append(query.query_id)
            told += [f"{query.query_id}\t{one.weight:.6f}\t{one.text}\n" for one in found]
            fewer += [] if len(found) == count else [query.query_id]
            advance(1)
    with new_file(output) as out:
        out.writelines(lines)
    if report:
        with new_file(report) as out:
            out.writelines(told)
    say(f"{len(told):,} rewordings of {len(asked):,} queries")
    if fewer:
        say(f"  note: {len(fewer)} queries have fewer than {count}: {', '.join(fewer[:5])}")
    if empty:
        say(f"  note: {len(empty)} queries hold no term, and are left out: {', '.join(empty[:5])}")
