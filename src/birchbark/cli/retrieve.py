"""`birchbark retrieve`: how are candidates retrieved for many queries?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark import defaults
from birchbark.cli.console import first_few, notify, progress, report_cut_queries
from birchbark.cli.from_options import (
    check_tag,
    check_threads,
    check_writable,
    models_on,
    take_ranker,
)
from birchbark.cli.options import (
    PATH,
    check_given_options,
    filter_option,
    index_argument,
    option,
    query_options,
    ranker_file_options,
    threads_option,
)
from birchbark.cli.report_vectors import report_missing_vectors
from birchbark.cli.shards import Part, shard_option, work_on_queries
from birchbark.errors import InputError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.index.index import Index
    from birchbark.pipeline.dense_engine import DenseEngine
    from birchbark.records import Query, Ranking
    from birchbark.retrieve.engine import IndexEngine


@click.command(
    epilog="Examples: birchbark retrieve articles.index --queries q.tsv --rm3 --output rm3.run; "
    "birchbark retrieve articles.index --queries q.tsv --first-stage dense --output dense.run",
    short_help="Rank with BM25, RM3, tf-idf or vectors.",
)
@index_argument
@query_options
@option("--output", required=True, type=PATH, help="Run to write, in TREC format.")
@option(
    "--first-stage",
    "first_stage_model",
    type=click.Choice(["bm25", "tfidf", "dense", "rrf"]),
    default=defaults.FIRST_STAGE,
    help="Retrieval model. tfidf: cosine of tf-idf vectors. dense: cosine of stored vectors. "
    "rrf: reciprocal rank fusion of bm25 and dense.",
)
@option(
    "--match",
    metavar="MODE",
    help="Which documents are candidates: those with any query term (or), with every term (and), "
    "with at least N terms (a number), or all documents (all); nearest, nearest:K and nearest+or "
    "use stored vectors: see `birchbark ranker`.  [default: or; nearest with dense; "
    "nearest+or with rrf]",
)
@option("--rm3", is_flag=True, help="Expand queries with RM3.")
@filter_option
@ranker_file_options
@option("--depth", default=defaults.RETRIEVAL_DEPTH, help="Number of documents to rank per query.")
@option("--weighted", is_flag=True, help="Read queries as weighted index terms: term^weight …")
@option(
    "--report",
    type=PATH,
    help="TSV file to write: query_id, share of documents that are candidates, expanded query "
    "(with vectors: the query's text).",
)
@threads_option
@option("--tag", help="Tag of the run.  [default: the first stage: bm25, bm25+rm3, dense, …]")
@shard_option
def command(
    index: Path,
    queries: Path,
    topic_fields: tuple[str, ...],
    encoding: str,
    output: Path,
    depth: int,
    weighted: bool,
    report: Path | None,
    threads: int | None,
    tag: str | None,
    shard_text: str | None,
    **choices: Any,
) -> None:
    """Rank the documents of INDEX for each query, by BM25, tf-idf or stored vectors."""
    from birchbark.artifact import new_file
    from birchbark.collection.queries import read_queries
    from birchbark.collection.run_metadata import write_described_run
    from birchbark.collection.runs import write_run
    from birchbark.index.index import Index
    from birchbark.pipeline.dense_engine import DenseEngine
    from birchbark.pipeline.open_engine import open_engine
    from birchbark.pipeline.ranker_file import settings_of
    from birchbark.records import Run

    check_given_options()
    first_stage, _ = take_ranker(choices, unused="stage")
    match, stage = first_stage.make()
    check_threads(match)
    check_tag(tag)
    part = Part.parse(shard_text, {output: 0, report: 0})
    for target in part.targets:
        check_writable(part.file(target))
    if report and report.absolute() == output.absolute():
        raise InputError("--output and --report are the same file", found=str(output))
    every = read_queries(queries, topic_fields, encoding)
    load = models_on(defaults.DEVICE, threads).scorer
    engine = open_engine(Index(index), stage, match, load)
    topics, work = part.queries(every), {}
    if part.shard:
        settings = {
            **{"depth": depth, "weighted": weighted, "tag": tag},
            **{"first_stage": repr(stage), "match": repr(match)},
        }
        models = [engine.embedding.fingerprint] if isinstance(engine, DenseEngine) else []
        work = work_on_queries(engine.index, every, models, settings)
        if part.is_finished(work):
            return
    check_ids(engine.index)
    if isinstance(engine, DenseEngine):
        report_missing_vectors(engine.index)
        report_cut_queries(sum(engine.embedding.cut_tokens(query.text) for query in topics))
    if not isinstance(engine, DenseEngine):
        rankings, lines = _rank_by_terms(engine, topics, depth, weighted, bool(report))
    elif weighted or any(query.weights for query in every):
        raise InputError("weights of queries have no effect where vectors match")
    else:
        rankings, lines = _rank_by_vectors(engine, topics, depth, bool(report))
    run = Run(rankings, tag or engine.name)
    if part.shard:
        write_run(run, part.file(output))
    else:
        made = {"name": run.tag, "method": first_stage.model, **settings_of(first_stage)}
        write_described_run(
            run,
            output,
            [made],
            indexing={"analyzer": engine.index.analyzer.name},
            data={"source": str(index), "topics": str(queries)},
        )
    if report:
        with new_file(part.file(report)) as out:
            out.writelines(lines)
    part.finish(work)
    empty = [query_id for query_id, ranking in run.rankings.items() if not len(ranking)]
    documents = sum(map(len, run.rankings.values()))
    notify(f"ranked {plural(documents, 'document')} for {plural(len(topics), 'query')}")
    if empty:
        notify(f"  note: queries that matched nothing: {len(empty)} ({first_few(empty)})")


def check_ids(index: Index) -> None:
    """Raise InputError if an id in the index cannot be written to a run."""
    from birchbark.collection.runs import invalid_id

    for part in index.parts:
        for bad in part.doc_ids.matches(re.compile(r"\s")):
            if part.find(bad) is not None:  # not deleted
                raise invalid_id(bad, str(index.directory))


def _rank_by_terms(
    engine: IndexEngine, topics: Sequence[Query], depth: int, weighted: bool, report: bool
) -> tuple[dict[str, Ranking], list[str]]:
    """Return query id → ranking, and the report with a line per query, empty unless `report`."""
    from birchbark.retrieve.first_stage import expanded_query, match_ratio, rank_expanded
    from birchbark.retrieve.query_terms import format_weighted, parse_weighted, query_terms

    index, stage = engine.index, engine.stage
    given = {query.query_id: query.weights for query in topics}
    for query in topics if weighted else ():  # all, before the first is ranked
        try:
            given[query.query_id] = parse_weighted(query.text)
        except InputError as fault:
            raise fault.at(f"query {query.query_id}") from None
    rankings, lines, unexpanded, short = {}, [], 0, []
    with progress("retrieving", len(topics)) as advance:
        for query in topics:
            parsed = given[query.query_id]
            weights = query_terms(index.analyzer, query.text) if parsed is None else parsed
            expanded = expanded_query(index, weights, stage)
            unexpanded += bool(stage.expansion) and expanded.keys() == weights.keys()
            short += [query.query_id] * ((stage.match.minimum or 0) > len(weights))
            rankings[query.query_id] = rank_expanded(index, expanded, weights, stage, depth)
            if report:
                ratio = match_ratio(index, weights, stage)
                lines.append(f"{query.query_id}\t{ratio:.6f}\t{format_weighted(expanded)}\n")
            advance(1)
    if unexpanded:
        notify(f"note: queries to which RM3 added no term: {unexpanded} (see max_df_share)")
    if short:
        notify(
            "note: queries with fewer terms than `match` requires: "
            f"{len(short)} ({first_few(short)})"
        )
    return rankings, lines


def _rank_by_vectors(
    engine: DenseEngine, topics: Sequence[Query], depth: int, report: bool
) -> tuple[dict[str, Ranking], list[str]]:
    """Return what `_rank_by_terms` returns, for an engine that matches by vectors."""
    rankings, lines = {}, []
    with progress("retrieving", len(topics)) as advance:
        for query in topics:
            rankings[query.query_id] = engine.rank(query.text, depth)
            if report:
                ratio = engine.match_ratio(query.text, depth)
                lines.append(f"{query.query_id}\t{ratio:.6f}\t{' '.join(query.text.split())}\n")
            advance(1)
    return rankings, lines
