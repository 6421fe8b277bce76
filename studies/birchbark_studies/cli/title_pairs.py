"""`birchbark study title-pairs`: how are training pairs made from titles and texts?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark.cli.console import counted, notify, progress
from birchbark.cli.options import (
    BAD_RECORD_REMEDY,
    format_option,
    option,
    skip_bad_option,
)
from birchbark.cli.pairs_options import (
    all_encoding_option,
    check_outputs,
    output_option,
    seed_option,
    write_and_report,
)
from birchbark_studies.title_pairs import NEGATIVE_SHARE, TitleChanges

if TYPE_CHECKING:
    from birchbark import Document
    from birchbark.collection.parsing.intake import Intake
    from birchbark.records import Pair

USUAL = TitleChanges()
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _probability(name: str, parameter: str, default: float, text: str) -> Decorator:
    """Return an option for the probability of a change. text: the change, a gerund phrase."""
    return option(
        name,
        parameter,
        type=click.FloatRange(0, 1),
        default=default,
        metavar="P",
        help=f"Probability of {text}.",
    )


@click.command(
    "title-pairs",
    epilog="Example: birchbark study title-pairs articles.jsonl --negative-share 0.65 "
    "--shuffle-title 0.2 --output pairs.tsv",
    short_help="Pairs from titles and texts, without judgments.",
)
@click.argument("collection")
@output_option
@format_option
@option("--title-field", default="title", metavar="FIELD", help="Document field with the title.")
@option("--text-field", default="text", metavar="FIELD", help="Document field with the text.")
@option(
    "--negative-share",
    type=click.FloatRange(0, 1, max_open=True),
    default=NEGATIVE_SHARE,
    metavar="SHARE",
    help="Share of pairs whose text belongs to another document.",
)
@_probability(
    "--drop-stop-words",
    "stop_words",
    USUAL.stop_words,
    "removing the stop words of a title",
)
@_probability(
    "--shorten-title",
    "short_title",
    USUAL.short_title,
    "shortening a title to a part of it, at least a quarter of its words",
)
@_probability("--shuffle-title", "shuffle", USUAL.shuffle, "shuffling the words of a title")
@_probability("--shorten-text", "short_text", USUAL.short_text, "shortening a text to a part of it")
@_probability(
    "--title-title",
    "title_title",
    USUAL.title_title,
    "pairing a title with titles instead of texts",
)
@_probability("--swap", "swap", USUAL.swap, "using a text as the query, and pairing it with titles")
@option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Write only N of the pairs, drawn at random.",
)
@seed_option
@all_encoding_option
@skip_bad_option
def title_pairs(
    collection: str,
    output: Path,
    format_name: str | None,
    title_field: str,
    text_field: str,
    negative_share: float,
    limit: int | None,
    seed: int,
    encoding: str,
    skip_bad: bool | None,
    **probabilities: float,
) -> None:
    """Pair the title of each document of COLLECTION with its text, and with other texts.

    The pairs can train a model on a collection without judgments. Titles serve as queries; some are
    changed, because titles are longer and more complete than real queries. A query has the id of
    its document, whose text is relevant. Queries and texts can be truncated in the training
    configuration: the report that proposed this method used query_length = 62 and max_length = 512.
    The collection is read three times.
    """
    from birchbark.collection.documents import read_collection
    from birchbark.collection.parsing.intake import Intake
    from birchbark.pairs.judged import add_negatives, judged_pairs
    from birchbark.pairs.random_negatives import random_negatives
    from birchbark_studies.title_pairs import (
        TitlePairs,
        drawn,
        negatives_per_positive,
        with_title_and_text,
    )

    check_outputs(output)
    made = TitlePairs(TitleChanges(**probabilities), seed)
    max_negatives = math.ceil(negatives_per_positive(negative_share))

    def read(intake: Intake, advance: Callable[[int], None]) -> Iterator[Document]:
        documents = read_collection(collection, intake, format_name)
        return with_title_and_text(counted(documents, advance), title_field, text_field)

    with progress("making queries from titles") as advance:
        made.add(read(Intake(skip_bad, encoding, BAD_RECORD_REMEDY), advance))
    qrels = made.qrels()
    if max_negatives:
        with progress("sampling documents") as advance:
            documents = read(Intake(skip_bad, encoding), advance)
            doc_ids = (d.doc_id for d in documents if d.doc_id in made.queries)
            sample = random_negatives(qrels, doc_ids, max_negatives, seed)
        qrels = add_negatives(qrels, made.negatives(sample, negative_share))
    if limit:
        qrels = drawn(qrels, limit, seed)
    intake = Intake(skip_bad, encoding, BAD_RECORD_REMEDY)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        documents = read(intake, advance)
        return judged_pairs(made.queries.values(), qrels, documents, intake, made.texts)

    write_and_report(pairs, output, intake)
    if made.incomplete:
        notify(f"  note: documents without a title or a text, left out: {made.incomplete:,}")
    for change, count in sorted(made.change_counts.items()):
        notify(f"  {count:,} {change}")
