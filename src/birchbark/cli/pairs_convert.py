"""`birchbark pairs triples`, `id-triples`, `car`: how are MS MARCO and TREC CAR converted?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli import pairs_options as shared
from birchbark.cli.console import counted
from birchbark.cli.from_options import load_queries
from birchbark.cli.options import (
    BAD_RECORD_REMEDY,
    PATH,
    format_option,
    option,
    query_file_options,
    skip_bad_option,
)

if TYPE_CHECKING:
    from birchbark.collection.intake import Intake
    from birchbark.records import Document, Pair


@click.command(
    epilog="Example: birchbark pairs triples triples.train.small.tsv --limit 1000000 "
    "--output pairs.tsv",
    short_help="Pairs from MS MARCO's triples of texts.",
)
@click.argument("file", type=PATH)
@shared.output_option
@shared.limit_option
@shared.all_encoding_option
@skip_bad_option
def triples(
    file: Path, output: Path, limit: int | None, encoding: str, skip_bad: bool | None
) -> None:
    """Make two pairs from each line of FILE: query TAB relevant text TAB irrelevant text.

    Ids are hashes of the texts. A pair that occurs in several lines is written several times.
    """
    from birchbark.collection.intake import Intake
    from birchbark.pairs.msmarco import read_triples

    shared.check_outputs(output)
    intake = Intake(skip_bad, encoding, BAD_RECORD_REMEDY)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        return counted(read_triples(file, intake), advance)

    shared.write_and_report(pairs, output, intake, limit)


@click.command(
    "id-triples",
    epilog="Example: birchbark pairs id-triples qidpidtriples.train.small.tsv --queries "
    "queries.train.tsv --collection collection.tsv --output pairs.tsv",
    short_help="Pairs from MS MARCO's triples of ids.",
)
@click.argument("file", type=PATH)
@query_file_options
@option("--collection", required=True, help="File or folder of the passages.")
@shared.output_option
@format_option
@shared.limit_option
@shared.all_encoding_option
@skip_bad_option
def id_triples(
    file: Path,
    queries: Path,
    topic_fields: tuple[str, ...],
    collection: str,
    output: Path,
    format_name: str | None,
    limit: int | None,
    encoding: str,
    skip_bad: bool | None,
) -> None:
    """Make two pairs from each line of FILE: query id TAB relevant id TAB irrelevant id.

    All texts that FILE refers to are held in memory, even with --limit. If you need only a few
    pairs, shorten FILE.
    """
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.pairs.msmarco import read_id_triples

    shared.check_outputs(output)
    intake = Intake(skip_bad, encoding, BAD_RECORD_REMEDY)
    topics = load_queries(queries, topic_fields, encoding)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        documents = counted(read_collection(collection, intake, format_name), advance)
        return read_id_triples(file, topics, documents, intake)

    shared.write_and_report(pairs, output, intake, limit)


@click.command(
    epilog="Example: birchbark pairs car train.cbor-paragraphs.cbor --qrels "
    "train.pages.cbor-hierarchical.qrels --random-negatives 1 --output pairs.tsv",
    short_help="Pairs from TREC CAR's sections and paragraphs.",
)
@click.argument("paragraphs", type=PATH)
@shared.qrels_option
@shared.output_option
@shared.random_negatives_option
@shared.limit_option
@shared.seed_option
@skip_bad_option
def car(
    paragraphs: Path,
    qrels: Path,
    output: Path,
    random_negatives: int | None,
    limit: int | None,
    seed: int,
    skip_bad: bool | None,
) -> None:
    """Pair the headings of each section with the section's paragraphs from the file PARAGRAPHS.

    The judgments name only relevant paragraphs; use --random-negatives to add pairs with relevance
    0. Requires pip install 'birchbark[car]'.
    """
    from birchbark.collection.intake import Intake
    from birchbark.pairs.trec_car import section_pairs

    shared.check_outputs(output)
    intake = Intake(skip_bad, remedy=BAD_RECORD_REMEDY)
    grades = shared.read_judgments(qrels, intake)
    if random_negatives:
        documents = _read_documents(paragraphs, Intake(skip_bad, remedy=BAD_RECORD_REMEDY))
        grades = shared.with_random_negatives(grades, documents, random_negatives, seed)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        documents = counted(_read_documents(paragraphs, intake), advance)
        return section_pairs(grades, documents, intake)

    shared.write_and_report(pairs, output, intake, limit)


def _read_documents(paragraphs: Path, intake: Intake) -> Iterator[Document]:
    from birchbark.pairs.trec_car import read_paragraphs

    return (document for _, document in read_paragraphs(paragraphs, intake))
