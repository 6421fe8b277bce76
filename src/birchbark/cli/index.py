"""`birchbark index`: a collection becomes an index on disk."""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.options import FILE
from birchbark.cli.talk import counted, progress, report_intake, say


@click.command(
    epilog="Example: birchbark index articles/ --to articles.index",
    short_help="Index a collection.",
)
@click.argument("collection")
@click.option("--to", "directory", required=True, type=FILE, help="Where the index is written.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["jsonl", "tsv", "trec", "folder", "pydocs"]),
    help="Told from the name where not given.",
)
@click.option(
    "--analyzer",
    type=click.Choice(["english", "porter", "plain"]),
    default="english",
    show_default=True,
    help="How text becomes terms; queries go through the same.",
)
@click.option("--encoding", default="utf-8", show_default=True, help="Of the collection's files.")
@click.option("--skip-bad", is_flag=True, help="Count and report bad records, and go on.")
@click.option("--replace", is_flag=True, help="Replace the index that is there.")
def command(
    collection: str,
    directory: Path,
    format_name: str | None,
    analyzer: str,
    encoding: str,
    skip_bad: bool,
    replace: bool,
) -> None:
    """Index COLLECTION: a file, a folder, or the word pydocs.

    \b
    jsonl   an object a line: id, title, text and any further fields; .gz too
    tsv     id TAB text, id TAB title TAB text, or id TAB url TAB title TAB text
    trec    <DOC>…</DOC>, a file or a folder of files
    folder  .txt, .md and .html files, one document each
    pydocs  the documentation inside this Python's standard library
    """
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.index.build import build_index

    remedy = "mend it, or leave out bad records with --skip-bad"
    intake = Intake(skip_bad, encoding, remedy)
    with progress("indexing") as advance:
        documents = counted(read_collection(collection, intake, format_name), advance)
        index = build_index(documents, directory, analyzer_name=analyzer, replace=replace)
    totals = index.totals(index.fields[0])
    say(f"indexed {len(index):,} documents, {totals.tokens:,} terms, in {directory}")
    report_intake(intake)
