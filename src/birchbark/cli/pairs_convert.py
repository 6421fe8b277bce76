"""`birchbark pairs triples`, `id-triples`: how are MS MARCO's triples converted?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    from birchbark.records import Pair


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
