"""`birchbark rerank`: how is a run re-ranked by the evidence in segments?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark import defaults
from birchbark.cli.console import notify, progress, report_stats
from birchbark.cli.from_options import (
    check_tag,
    check_writable,
    make_rankers,
    models_on,
    stored_scores,
    take_ranker,
)
from birchbark.cli.grouped_help import GroupedCommand
from birchbark.cli.options import (
    PATH,
    check_given_options,
    index_argument,
    option,
    query_options,
    ranker_options,
)
from birchbark.cli.shards import Part, shard_option, work_on_queries
from birchbark.errors import InputError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.pipeline.answers.answer import SearchStats
    from birchbark.pipeline.rerank import RerankedQuery
    from birchbark.pipeline.settings.ranker import Ranker
    from birchbark.pipeline.stage_options import StageOptions


@click.command(
    cls=GroupedCommand,
    epilog="Example: birchbark rerank articles.index --run rm3.run --queries queries.tsv "
    "--output bert.run",
    short_help="Re-rank a run with BERT.",
)
@index_argument
@option("--run", "run_file", required=True, type=PATH, help="Run to re-rank.")
@query_options
@option("--output", required=True, type=PATH, help="Run to write, in TREC format.")
@ranker_options
@option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Rank only the K best documents per query, and do not score documents that cannot be "
    "among them.  [default: all]",
)
@option(
    "--report",
    type=PATH,
    help="TSV file to write with statistics per query: documents scored, pairs, truncated tokens.",
)
@option(
    "--evidence",
    type=PATH,
    help="JSON Lines file to write with a line per document that was read: its score and the parts "
    "of it, the segments with a weight, and the scores of all segments that were read. `birchbark "
    "tune` chooses weights from it; have everything read for that (--set read_segments=all).",
)
@option("--tag", help="Tag of the new run.  [default: the old tag + the kind of model]")
@shard_option
def command(
    index: Path,
    run_file: Path,
    queries: Path,
    topic_fields: tuple[str, ...],
    encoding: str,
    output: Path,
    top: int | None,
    report: Path | None,
    evidence: Path | None,
    tag: str | None,
    shard_text: str | None,
    scores: Path | None,
    device: str,
    threads: int | None,
    **choices: Any,
) -> None:
    """Re-rank a run over INDEX: score = A · first stage + (1 - A) · evidence of the segments.

    Documents below `depth` keep their order, below the re-ranked ones. With --scores, repeating an
    interrupted command resumes it, and other weights, depths and aggregations run BERT only on
    segments without a stored score.
    """
    from birchbark.artifact import new_file
    from birchbark.collection.queries import read_queries
    from birchbark.collection.run_metadata import known_stages, write_described_run
    from birchbark.collection.runs import read_run, write_run
    from birchbark.device.torch_session import name_of_device
    from birchbark.index.index import Index
    from birchbark.pipeline.answers.answer import SearchStats
    from birchbark.pipeline.rerank import check_queries, rerank
    from birchbark.records import Run

    check_given_options()
    _, stages = take_ranker(choices, unused="first_stage")
    if not stages:
        raise InputError("nothing re-ranks (model none)", wanted="a model")
    check_tag(tag)
    part = Part.parse(shard_text, {output: 0, report: 1, evidence: 0}, scores)
    for target in part.targets:
        check_writable(part.file(target))
    files = [file.absolute() for file in (output, report, evidence) if file]
    if len(set(files)) < len(files):
        raise InputError("two of --output, --report and --evidence are the same file")
    opened, every = Index(index), read_queries(queries, topic_fields, encoding)
    run = read_run(run_file)
    rankers = make_rankers(models_on(device, threads), stages)
    topics, work = part.queries(every), {}
    if part.shard:  # before anything is scored, since files can change meanwhile
        if not run_file.is_file():
            raise InputError("with --shard, the run must be a file", where=str(run_file))
        scorers = [scorer for ranker in rankers for scorer in ranker.scorers]
        duos = [ranker.duo.model for ranker in rankers if ranker.duo]
        models = [model.fingerprint for model in (*scorers, *duos)]
        # paths of models can differ between machines; the weight that is used follows
        others: dict[str, Any] = {"model": "", "embedding": None, "duo": None}
        others["embedding_weight"] = None
        settings: dict[str, Any] = {"stages": [replace(stage, **others) for stage in stages]}
        settings |= {"run": run_file, "top": top, "tag": tag, "device": name_of_device(device)}
        settings["embedding_weight"] = [ranker.embedding_weight for ranker in rankers]
        work = work_on_queries(opened, every, models, settings)
        check_queries(run, every)
        if part.is_finished(work):
            return
        ids = {query.query_id for query in topics}
        run = Run({id_: ranking for id_, ranking in run.rankings.items() if id_ in ids}, run.tag)
    stats_of_query: dict[str, SearchStats] = {}
    with (
        stored_scores(rankers, scores, part.shard) as cached,
        new_file(part.file(evidence)) if evidence else nullcontext() as lines,
        progress("scoring", len(topics)) as advance,
    ):

        def done(query: RerankedQuery) -> None:
            stats_of_query[query.query_id] = query.stats
            if lines:
                lines.writelines(_evidence_lines(query))
            advance(1)

        ranked = rerank(opened, run, topics, cached, top=top, tag=tag, on_query=done)
        if part.shard:
            write_run(ranked, part.file(output))
        else:
            write_described_run(
                ranked,
                output,
                [*known_stages([(run_file, run)]), *_made_by(run.tag, ranked.tag, stages, rankers)],
                indexing={"analyzer": opened.analyzer.name},
                data={"source": str(index), "topics": str(queries)},
            )
    if report:
        _write_report(part.file(report), stats_of_query)
    part.finish(work)
    stats = sum(stats_of_query.values(), SearchStats())
    documents = sum(len(ranking.head(rankers[0].depth)) for ranking in run.rankings.values())
    notify(
        f"re-ranked {plural(documents, 'document')} for {plural(len(run.rankings), 'query')} "
        f"with {', then '.join(_model_names(rankers))}: {stats.pairs:,} query–segment pairs"
        + (f", {stats.comparisons:,} comparisons" if stats.comparisons else "")
    )
    report_stats(stats, opened, rankers)


def _made_by(
    reranked: str, tag: str, stages: Sequence[StageOptions], rankers: Sequence[Ranker]
) -> Iterator[dict[str, Any]]:
    """Yield how each stage re-ranks the one before, the first one the run with the tag."""
    from birchbark.pipeline.ranker_file import settings_of
    from birchbark.pipeline.stage_options import ALL, NONE
    from birchbark.segment.by_name import segmenter_name

    for number, (stage, ranker) in enumerate(zip(stages, rankers, strict=True), 1):
        name = tag if number == len(stages) else f"{tag}, stage {number}"
        method = {"name": name, "method": ranker.scorer.name, "reranks": reranked}
        plan = ranker.plan
        read = {
            "read_segments": plan.segments,
            "read_documents": plan.documents,
            "read_pairs": plan.pairs,
            "embed_segments": plan.embedded,
            "embed_documents": plan.embedded_documents,
        }
        chosen: dict[str, Any] = {name: str(count or ALL) for name, count in read.items()}
        chosen["segments"] = segmenter_name(ranker.segmenter)
        if ranker.embedding:
            method["embedding"] = ranker.embedding.name
            chosen["embedding_weight"] = ranker.embedding_weight
        else:
            chosen["embedding"] = NONE
        if ranker.scorer.width == 1:
            chosen["aggregate"] = stage.aggregate or defaults.AGGREGATION
        yield settings_of(replace(stage, **chosen)) | method
        reranked = name


def _model_names(rankers: Sequence[Ranker]) -> list[str]:
    scorers = [scorer for r in rankers for scorer in (r.scorer, r.duo and r.duo.model) if scorer]
    return [scorer.name for scorer in scorers]


def _evidence_lines(query: RerankedQuery) -> Iterator[str]:
    """Yield a line of JSON for each document that was read; `scores` are those of its segments."""
    from birchbark.pipeline.answers.hit_fields import hit_fields

    for hit in query.hits():
        if not hit.scored:
            continue
        scores = query.segment_scores(hit.document.doc_id)
        of_hit = {"query_id": query.query_id, **hit_fields(hit), "scores": scores}
        for segment in of_hit["segments"]:
            del segment["marks"], segment["sentence"]  # known of hits that are shown
        yield json.dumps(of_hit, ensure_ascii=False) + "\n"


def _write_report(path: Path, stats_of_query: Mapping[str, SearchStats]) -> None:
    """Write a TSV file with one row of statistics per query."""
    from birchbark.artifact import new_file
    from birchbark.pipeline.answers.answer import SearchStats

    names = [field.name for field in fields(SearchStats) if field.name != "missing_shards"]
    with new_file(path) as out:
        out.write("\t".join(["query_id", *names]) + "\n")
        for query_id, stats in stats_of_query.items():
            values = [str(getattr(stats, name)).lower() for name in names]
            out.write("\t".join([query_id, *values]) + "\n")
