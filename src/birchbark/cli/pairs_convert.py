"""`birchbark pairs triples`, `id-triples`, `car`: MS MARCO and TREC CAR become training pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli import pairs_parts as parts
from birchbark.cli.chosen import load_queries
from birchbark.cli.options import FILE, FORMAT, REMEDY, SKIP_BAD, asked_options
from birchbark.cli.talk import counted

if TYPE_CHECKING:
    from birchbark.collection.intake import Intake
    from birchbark.records import Document, Pair


@click.command(
    epilog="Example: birchbark pairs triples triples.train.small.tsv --limit 1000000 "
    "--output pairs.tsv",
    short_help="From MS MARCO's triples of texts.",
)
@click.argument("file", type=FILE)
@parts.OUTPUT
@parts.LIMIT
@parts.ENCODING
@SKIP_BAD
def triples(file: Path, output: Path, limit: int | None, encoding: str, skip_bad: bool) -> None:
    """Two pairs for each line of FILE: query TAB relevant text TAB another text.

    Ids are made from the texts. A query and text that stand in many lines are written as often.
    """
    from birchbark.collection.intake import Intake
    from birchbark.collection.msmarco import read_triples

    parts.check_outputs(output, split=False)
    intake = Intake(skip_bad, encoding, REMEDY)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        return counted(read_triples(file, intake), advance)

    parts.write_and_tell(pairs, output, intake, limit)


@click.command(
    "id-triples",
    epilog="Example: birchbark pairs id-triples qidpidtriples.train.small.tsv --queries "
    "queries.train.tsv --collection collection.tsv --output pairs.tsv",
    short_help="From MS MARCO's triples of ids.",
)
@click.argument("file", type=FILE)
@asked_options
@click.option("--collection", required=True, help="The passages: a file or folder.")
@parts.OUTPUT
@FORMAT
@parts.LIMIT
@parts.ENCODING
@SKIP_BAD
def id_triples(
    file: Path,
    queries: Path,
    topic_fields: tuple[str, ...],
    collection: str,
    output: Path,
    format_name: str | None,
    limit: int | None,
    encoding: str,
    skip_bad: bool,
) -> None:
    """Two pairs for each line of FILE: query id TAB relevant document's id TAB another's.

    Memory holds the texts that FILE names, whatever the limit: to have few, cut FILE first.
    """
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.collection.msmarco import read_id_triples

    parts.check_outputs(output, split=False)
    intake = Intake(skip_bad, encoding, REMEDY)
    asked = load_queries(queries, topic_fields, encoding)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        documents = counted(read_collection(collection, intake, format_name), advance)
        return read_id_triples(file, asked, documents, intake)

    parts.write_and_tell(pairs, output, intake, limit)


@click.command(
    epilog="Example: birchbark pairs car train.cbor-paragraphs.cbor --qrels "
    "train.pages.cbor-hierarchical.qrels --in-collection 1 --output pairs.tsv",
    short_help="From TREC CAR's paragraphs and sections.",
)
@click.argument("paragraphs", type=FILE)
@parts.QRELS
@parts.OUTPUT
@parts.IN_COLLECTION
@parts.LIMIT
@parts.SEED
@SKIP_BAD
def car(
    paragraphs: Path,
    qrels: Path,
    output: Path,
    in_collection: int | None,
    limit: int | None,
    seed: int,
    skip_bad: bool,
) -> None:
    """Pair each section, by its headings, with the paragraphs of PARAGRAPHS that stand in it.

    The judgments name relevant paragraphs alone: without --in-collection no pair has relevance 0.
    Needs pip install 'birchbark[car]'.
    """
    from birchbark.collection.car import section_pairs
    from birchbark.collection.intake import Intake
    from birchbark.collection.judged import with_negatives

    parts.check_outputs(output, split=False)
    intake = Intake(skip_bad, remedy=REMEDY)
    labelled = parts.judgments(qrels, intake)
    if in_collection:
        again = _documents(paragraphs, Intake(skip_bad, remedy=REMEDY))
        sample = parts.drawn_anywhere(labelled, again, in_collection, seed)
        labelled = with_negatives(labelled, sample)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        documents = counted(_documents(paragraphs, intake), advance)
        return section_pairs(labelled, documents, intake)

    parts.write_and_tell(pairs, output, intake, limit)


def _documents(paragraphs: Path, intake: Intake) -> Iterator[Document]:
    from birchbark.collection.car import read_paragraphs

    return (document for _, document in read_paragraphs(paragraphs, intake))
