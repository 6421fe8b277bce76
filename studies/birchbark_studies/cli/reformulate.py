"""`birchbark study reformulate`: how are queries expanded with a masked language model?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.console import first_few, notify, progress
from birchbark.cli.from_options import check_writable
from birchbark.cli.options import PATH, index_argument, option, query_options
from birchbark.show.plural import plural
from birchbark_studies.query_variants import VARIANT_WEIGHT, VARIANTS


@click.command(
    epilog="Example: birchbark study reformulate articles.index --queries q.tsv "
    "--model adapted/model --output weighted.tsv; birchbark retrieve articles.index "
    "--queries weighted.tsv --weighted --output reformulated.run",
    short_help="Expand queries with a masked language model.",
)
@index_argument
@query_options
@option(
    "--model",
    required=True,
    help="Masked language model (`birchbark train` with a table [masked]).",
)
@option(
    "--variants",
    "count",
    type=click.IntRange(1),
    default=VARIANTS,
    help="Number of variants per query.",
)
@option(
    "--variant-weight",
    type=click.FloatRange(0, 1),
    default=VARIANT_WEIGHT,
    help="Weight of a variant relative to the query; it is multiplied by their similarity.",
)
@option("--output", required=True, type=PATH, help="TSV file: query_id, term^weight …")
@option("--report", type=PATH, help="TSV file to write: query_id, weight, variant.")
def reformulate(
    index: Path,
    queries: Path,
    topic_fields: tuple[str, ...],
    encoding: str,
    model: str,
    count: int,
    variant_weight: float,
    output: Path,
    report: Path | None,
) -> None:
    """Write each query and its variants as weighted terms of INDEX, for `retrieve --weighted`.

    In each variant, one word of the query is replaced by another word that --model predicts. The
    similarity of query and variant is the cosine of the model's vectors for them.
    """
    from birchbark import Index, read_queries
    from birchbark.artifact import new_file
    from birchbark.checkpoint.locate import locate
    from birchbark.retrieve.query_terms import format_weighted
    from birchbark.score.masked_lm import MaskedLanguageModel
    from birchbark_studies.query_variants import (
        check_queries,
        query_variants,
        terms_with_variants,
    )

    check_writable(output)
    check_writable(report)
    topics = read_queries(queries, topic_fields, encoding)
    analyzer = Index(index).analyzer
    masked = MaskedLanguageModel(locate(model))
    check_queries(masked, topics)
    lines, report_lines, incomplete, empty = [], [], [], []
    with progress("reformulating", len(topics)) as advance:
        for query in topics:
            variants = query_variants(masked, query.text, analyzer.terms, count)
            weights = terms_with_variants(analyzer, query.text, variants, variant_weight)
            if weights:
                lines.append(f"{query.query_id}\t{format_weighted(weights)}\n")
            else:
                empty.append(query.query_id)
            report_lines += [f"{query.query_id}\t{v.weight:.6f}\t{v.text}\n" for v in variants]
            incomplete += [] if len(variants) == count else [query.query_id]
            advance(1)
    with new_file(output) as out:
        out.writelines(lines)
    if report:
        with new_file(report) as out:
            out.writelines(report_lines)
    notify(f"{plural(len(report_lines), 'variant')} of {plural(len(topics), 'query')}")
    if incomplete:
        few = first_few(incomplete)
        notify(f"  note: queries with fewer than {count} variants: {len(incomplete)} ({few})")
    if empty:
        notify(f"  note: queries without a term, skipped: {len(empty)} ({first_few(empty)})")
