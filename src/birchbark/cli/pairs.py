"""`birchbark pairs`: how are training pairs made from a judged collection?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.cli import pairs_options as shared
from birchbark.cli.console import counted, notify
from birchbark.cli.from_options import models_on
from birchbark.cli.options import (
    BAD_RECORD_REMEDY,
    PATH,
    check_given_options,
    device_option,
    format_option,
    option,
    query_file_options,
    skip_bad_option,
)
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.pairs.run_negatives import RankRange
    from birchbark.records import Pair, Qrels


@click.command(
    epilog="Examples: birchbark pairs articles/ --queries q.tsv --qrels qrels.txt "
    "--run bm25.run --ranks 10-100 --negatives 10 --output pairs.tsv; as in the passages paper: "
    "birchbark pairs articles/ --queries q.tsv --qrels qrels.txt --run bm25.run "
    "--ranks 1-40 --all-ranked --segments windows:150/50 --holdout 0.2 --output pairs.tsv",
    short_help="Make training pairs from a judged collection.",
)
@click.argument("collection")
@query_file_options
@shared.qrels_option
@shared.output_option
@format_option
@option("--run", "run_file", type=PATH, help="Run to take more documents from.")
@option("--ranks", metavar="A-B", help="Ranks of the run to take.  [default: all]")
@option(
    "--negatives",
    type=click.IntRange(1),
    metavar="N",
    help="Add N random unjudged documents per query from these ranks, as not relevant.",
)
@option(
    "--all-ranked",
    is_flag=True,
    help="Use all documents at these ranks, and no others; unjudged documents count as not "
    "relevant.",
)
@shared.random_negatives_option
@option(
    "--segments",
    default="whole",
    metavar="METHOD",
    help="Make one pair for each document (whole), or one for each segment, with the document's "
    "grade: passages:SIZE, sentences, paragraphs, sections, windows:SIZE/OVERLAP (words), title or "
    "text.",
)
@option(
    "--best-segments",
    type=click.IntRange(1),
    metavar="N",
    help="Use only the N segments of each document that --scoring-model scores highest.",
)
@option(
    "--scoring-model",
    metavar="MODEL",
    help=f"Model for --best-segments.  [default: {defaults.MODEL}]",
)
@device_option
@option(
    "--holdout",
    type=float,
    metavar="SHARE",
    help="Write the pairs of about this share of the queries to PAIRS.held.tsv instead. They are "
    "chosen by their text: training on all pairs with validation = SHARE holds out the same ones.",
)
@shared.seed_option
@shared.all_encoding_option
@skip_bad_option
def command(
    collection: str,
    queries: Path,
    topic_fields: tuple[str, ...],
    qrels: Path,
    output: Path,
    format_name: str | None,
    run_file: Path | None,
    ranks: str | None,
    negatives: int | None,
    all_ranked: bool,
    random_negatives: int | None,
    segments: str,
    best_segments: int | None,
    scoring_model: str | None,
    device: str,
    holdout: float | None,
    seed: int,
    encoding: str,
    skip_bad: bool | None,
) -> None:
    """Pair each query with the documents of COLLECTION that are judged for it.

    The result is a file for `birchbark train`: TSV with the header qid, query, docid, text, label.
    White space within a text, including tabs and line breaks, is replaced by single spaces. To
    split texts into windows or to rename columns, use `chunk` and `columns` in the training
    configuration.

    If the judgments name only relevant documents, negatives can be sampled from a run or from the
    collection. Some of these are in fact relevant, but fewer of them farther down the run.
    """
    from birchbark.collection.documents import read_collection
    from birchbark.collection.parsing.intake import Intake
    from birchbark.collection.queries import read_queries
    from birchbark.pairs.holdout import held_out_ids
    from birchbark.pairs.judged import judged_pairs, segment_texts
    from birchbark.segment.by_name import parse_segmenter

    check_given_options()
    shared.check_outputs(output, holdout=holdout is not None)
    if best_segments and segments == "whole":
        raise InputError("--best-segments has no effect with --segments whole")
    texts_of, rank_range = segment_texts(parse_segmenter(segments)), parse_ranks(ranks)
    intake = Intake(skip_bad, encoding, BAD_RECORD_REMEDY)
    query_of = {query.query_id: query for query in read_queries(queries, topic_fields, encoding)}
    grades = shared.read_judgments(qrels, intake, query_of)
    selector = None
    if best_segments:
        from birchbark.pairs.best_passages import BestPassages

        scorer = models_on(device, None).scorer(scoring_model or defaults.MODEL)
        selector = BestPassages(scorer, best_segments)
        selector.check_queries(query_of[query_id] for query_id in grades.grades)
    if run_file:
        grades = with_run(grades, run_file, rank_range, negatives, seed)
    texts = {query_id: query_of[query_id].text for query_id in grades.grades}
    held_out = frozenset() if holdout is None else held_out_ids(texts, holdout)
    if random_negatives:
        first_pass = Intake(skip_bad, encoding, BAD_RECORD_REMEDY)
        documents = read_collection(collection, first_pass, format_name)
        grades = shared.with_random_negatives(grades, documents, random_negatives, seed)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        documents = counted(read_collection(collection, intake, format_name), advance)
        all_pairs = judged_pairs(query_of.values(), grades, documents, intake, texts_of)
        return selector.select(all_pairs) if selector else all_pairs

    stats = shared.write_and_report(pairs, output, intake, held_out_ids=held_out)
    shared.report_queries_without_pairs(query_of, stats)
    if selector:
        truncated = f", {selector.truncated:,} of them truncated" if selector.truncated else ""
        notify(f"{selector.scorer.name} scored {selector.scored:,} segments{truncated}")


def parse_ranks(text: str | None) -> RankRange:
    """Parse FIRST-LAST into a range of ranks; None means all ranks."""
    from birchbark.pairs.run_negatives import RankRange

    if text is None:
        return RankRange()
    numbers = re.fullmatch(r"(\d{1,9})-(\d{1,9})", text, re.ASCII)
    if not numbers:
        raise InputError(
            "not a range of ranks", found=repr(text), wanted="FIRST-LAST, for example 10-100"
        )
    return RankRange(int(numbers[1]), int(numbers[2]))


def with_run(
    qrels: Qrels, run_file: Path, ranks: RankRange, negatives: int | None, seed: int
) -> Qrels:
    """Return `qrels` with unjudged documents of a run as negatives.

    negatives: number of documents per query, drawn randomly from these ranks and added to the
    judged ones. None returns all documents at these ranks, and no others.
    """
    from birchbark.collection.runs import read_run
    from birchbark.pairs.judged import add_negatives
    from birchbark.pairs.run_negatives import ranked_qrels, run_negatives

    run, source = read_run(run_file), f"ranks {ranks} of {run_file}"
    try:
        if not negatives:
            ranked = ranked_qrels(qrels, run, ranks)
            shared.report_sample("used", ranked.grades, ranks.count, source)
            return ranked
        sample = run_negatives(qrels, run, ranks, negatives, seed)
    except InputError as error:
        raise error.at(str(run_file)) from None
    shared.report_sample("sampled", sample, negatives, source)
    return add_negatives(qrels, sample)
