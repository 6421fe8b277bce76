"""`birchbark pairs`: judged collections become training pairs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli import pairs_parts as parts
from birchbark.cli.chosen import load_queries
from birchbark.cli.options import DEFAULT_MODEL, FILE, FORMAT, REMEDY, SKIP_BAD, asked_options
from birchbark.cli.pairs_convert import car, id_triples, triples
from birchbark.cli.pairs_titles import titles
from birchbark.cli.pairs_unpack import unpack
from birchbark.cli.talk import counted, say
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.pairs.best import Best
    from birchbark.pairs.ranked import Ranks
    from birchbark.records import Pair, Qrels


@click.group(
    epilog="Example: birchbark pairs judged articles/ --queries queries.tsv --qrels qrels.txt "
    "--output pairs.tsv",
    short_help="Make training pairs from judged collections.",
)
def command() -> None:
    """Make files of pairs that `birchbark train` reads.

    They are TSV with the header qid, query, docid, text, label. Each stretch of white space within
    a text, tabs and line ends among it, becomes one space. What a training does itself is not done
    here: `chunk` cuts texts into pieces of so many words, `columns` renames.
    """


@command.command(
    epilog="Examples: birchbark pairs judged articles/ --queries q.tsv --qrels qrels.txt "
    "--run bm25.run --ranks 10-100 --negatives 10 --output pairs.tsv; as the passages paper did: "
    "birchbark pairs judged articles/ --queries q.tsv --qrels qrels.txt --run bm25.run "
    "--ranks 1-40 --all-ranked --segments windows:150/50 --split 0.2 --output pairs.tsv",
    short_help="From queries, judgments and documents.",
)
@click.argument("collection")
@asked_options
@parts.QRELS
@parts.OUTPUT
@FORMAT
@click.option("--run", "run_file", type=FILE, help="A run to take further documents from.")
@click.option("--ranks", metavar="A-B", help="Which of its ranks.  [default: all]")
@click.option(
    "--negatives",
    type=click.IntRange(1),
    metavar="N",
    help="Add N documents a query from these ranks, unjudged, as not relevant.",
)
@click.option(
    "--all-ranked",
    is_flag=True,
    help="Take every document of these ranks and no other; unjudged ones are not relevant.",
)
@parts.IN_COLLECTION
@click.option(
    "--segments",
    default="whole",
    show_default=True,
    metavar="HOW",
    help="A pair for each document (whole), or for each of its segments, with its grade: "
    "sentences, paragraphs, sections, windows:SIZE/OVERLAP in words; or title, text: each alone.",
)
@click.option(
    "--best",
    type=click.IntRange(1),
    metavar="N",
    help="Of each document, the N segments that --by thinks the best for the query, and no other.",
)
@click.option(
    "--by",
    "model",
    metavar="MODEL",
    help=f"The model that --best asks.  [default: {DEFAULT_MODEL}]",
)
@click.option(
    "--split",
    type=float,
    metavar="SHARE",
    help="Write the pairs of about this share of the queries to PAIRS.held.tsv instead; the same "
    "ones that a training keeps apart.",
)
@parts.SEED
@parts.ENCODING
@SKIP_BAD
def judged(
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
    in_collection: int | None,
    segments: str,
    best: int | None,
    model: str | None,
    split: float | None,
    seed: int,
    encoding: str,
    skip_bad: bool,
) -> None:
    """Pair each query with the documents of COLLECTION that are judged for it.

    With negatives besides, of a run or of the whole collection, because judgments often name the
    relevant alone. Some of these may be relevant in truth: lower ranks hold fewer of them.
    """
    from birchbark.collection.apart import ids_held_apart
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.collection.judged import by_segments, judged_pairs, with_negatives
    from birchbark.segment.named import parse_segmenter

    parts.check_outputs(output, split is not None)
    if best and segments == "whole":
        raise InputError("--best does nothing to whole documents", remedy="name --segments")
    if model and not best:
        raise InputError("--by does nothing without --best N")
    refuse_conflicts(run_file, ranks, negatives, all_ranked, in_collection)
    texts_of, chosen = by_segments(parse_segmenter(segments)), parse_ranks(ranks)
    intake = Intake(skip_bad, encoding, REMEDY)
    asked = {query.query_id: query for query in load_queries(queries, topic_fields, encoding)}
    labelled = parts.judgments(qrels, intake, asked)
    by = best_by(model or DEFAULT_MODEL, best) if best else None
    if by:
        by.check(asked[query_id] for query_id in labelled.grades)
    if run_file:
        labelled = with_run(labelled, run_file, chosen, negatives, seed)
    texts = {query_id: asked[query_id].text for query_id in labelled.grades}
    apart = frozenset() if split is None else ids_held_apart(texts, split)
    if in_collection:
        again = read_collection(collection, Intake(skip_bad, encoding, REMEDY), format_name)
        sample = parts.drawn_anywhere(labelled, again, in_collection, seed)
        labelled = with_negatives(labelled, sample)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        documents = counted(read_collection(collection, intake, format_name), advance)
        found = judged_pairs(asked.values(), labelled, documents, intake, texts_of)
        return by.of(found) if by else found

    tallies = parts.write_and_tell(pairs, output, intake, apart=apart)
    parts.tell_without_pairs(asked, tallies)
    if by:
        cut = f", {by.cut:,} of them by their beginning" if by.cut else ""
        say(f"{by.scorer.name} judged {by.scored:,} segments{cut}")


def best_by(model: str, count: int) -> Best:
    """The `count` best segments by `model`."""
    from birchbark.pairs.best import Best
    from birchbark.score.model import load_scorer

    return Best(load_scorer(model), count)


def refuse_conflicts(
    run_file: Path | None,
    ranks: str | None,
    negatives: int | None,
    all_ranked: bool,
    in_collection: int | None,
) -> None:
    """Raise InputError for options that contradict each other, or would do nothing."""
    given = {"--ranks": ranks, "--negatives": negatives, "--all-ranked": all_ranked}
    for name, value in given.items():
        if value and not run_file:
            raise InputError(f"{name} does nothing without --run")
    if run_file and not (negatives or all_ranked):
        raise InputError("--run does nothing without --negatives N or --all-ranked")
    if all_ranked and (negatives or in_collection):
        name = "--negatives" if negatives else "--in-collection"
        raise InputError("--all-ranked takes no other documents", found=name)


def parse_ranks(text: str | None) -> Ranks:
    """The ranks that `text`, FIRST-LAST, names; all without it."""
    from birchbark.pairs.ranked import Ranks

    if text is None:
        return Ranks()
    numbers = re.fullmatch(r"(\d{1,9})-(\d{1,9})", text, re.ASCII)
    if not numbers:
        raise InputError("not a range of ranks", found=repr(text), wanted="FIRST-LAST, as 10-100")
    return Ranks(int(numbers[1]), int(numbers[2]))


def with_run(qrels: Qrels, run_file: Path, ranks: Ranks, negatives: int | None, seed: int) -> Qrels:
    """`qrels` with so many negatives of these ranks, or all that is ranked there."""
    from birchbark.collection.judged import with_negatives
    from birchbark.collection.runs import read_run
    from birchbark.pairs.ranked import all_ranked, from_ranks

    run, source = read_run(run_file), f"ranks {ranks} of {run_file}"
    try:
        if not negatives:
            taken = all_ranked(qrels, run, ranks)
            parts.tell_documents("took", taken.grades, ranks.count, source)
            return taken
        sample = from_ranks(qrels, run, ranks, negatives, seed)
    except InputError as error:
        raise error.at(str(run_file)) from None
    parts.tell_documents("drew", sample, negatives, source)
    return with_negatives(qrels, sample)


for verb in (titles, triples, id_triples, car, unpack):
    command.add_command(verb)
