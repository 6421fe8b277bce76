"""`birchbark index add`, `delete` and `merge`: how is an index changed?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.console import notify, progress, report_intake
from birchbark.cli.options import (
    BAD_RECORD_REMEDY,
    PATH,
    encoding_option,
    format_option,
    index_argument,
    option,
    skip_bad_option,
)
from birchbark.cli.report_vectors import report_vectors
from birchbark.errors import InputError
from birchbark.show.plural import plural


@click.command(
    epilog="Example: birchbark index add articles.index new-articles/",
    short_help="Add or replace documents.",
)
@index_argument
@click.argument("collection")
@format_option
@encoding_option("the collection's files")
@skip_bad_option
def add(
    index: Path, collection: str, format_name: str | None, encoding: str, skip_bad: bool | None
) -> None:
    """Add the documents of COLLECTION to INDEX; documents with the same id are replaced."""
    from birchbark.collection.documents import read_collection
    from birchbark.collection.parsing.intake import Intake
    from birchbark.pipeline.upkeep.update_index import AddedDocuments, Changes, add_documents
    from birchbark.score.load_scorer import load_scorer

    intake = Intake(skip_bad, encoding, BAD_RECORD_REMEDY)

    def report(added: AddedDocuments, total: int) -> None:
        notify(
            f"added {plural(added.new, 'document')} and replaced {added.replaced:,}; "
            f"{total:,} in {index}"
        )
        report_intake(intake)

    changes = Changes(read_collection(collection, intake, format_name))
    add_documents(index, changes, load_scorer, progress, report)
    report_vectors(index)


@click.command(
    epilog="Example: birchbark index delete articles.index --ids withdrawn.txt",
    short_help="Delete documents by id.",
)
@index_argument
@click.argument("doc_ids", nargs=-1)
@option("--ids", type=PATH, help="File of document ids, one per line.")
def delete(index: Path, doc_ids: tuple[str, ...], ids: Path | None) -> None:
    """Delete the documents DOC_IDS from INDEX; if one does not exist, none is deleted.

    In the index of a folder, a document stays deleted until its file changes.
    """
    from birchbark.collection.parsing.lines import binary_lines, decode_lines
    from birchbark.index.sharded_writer import open_writer

    listed = [line for line in decode_lines(binary_lines(ids), ids) if line.strip()] if ids else []
    all_ids = list(dict.fromkeys([*doc_ids, *listed]))
    if not all_ids:
        raise InputError("no document to delete", remedy="give ids, or a file of them with --ids")
    with open_writer(index) as writer:
        for doc_id in all_ids:
            if not writer.delete(doc_id):
                raise InputError(f"no document {doc_id}; nothing was deleted", where=str(index))
        remaining = len(writer)
    notify(f"deleted {plural(len(all_ids), 'document')}; {remaining:,} in {index}")


@click.command(
    epilog="Example: birchbark index merge articles.index",
    short_help="Merge all parts, and drop deleted documents.",
)
@index_argument
def merge(index: Path) -> None:
    """Rewrite INDEX as a single part without deleted documents; searches can continue meanwhile.

    An index in shards has a single part in each of them.
    """
    from birchbark.index.index import Index
    from birchbark.index.sharded_writer import open_writer
    from birchbark.pipeline.upkeep.update_index import build_missing_graphs

    with open_writer(index) as writer:
        writer.merge()
        parts = len(Index(index).parts)  # one, or one for each shard
        notify(f"{plural(len(writer), 'document')} in {plural(parts, 'part')} in {index}")
        build_missing_graphs(writer, progress)
    report_vectors(index)
