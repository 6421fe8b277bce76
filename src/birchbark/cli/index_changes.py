"""`birchbark index add`, `delete` and `merge`: an index changes."""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.index_keep import link
from birchbark.cli.options import ENCODING, FILE, FORMAT, INDEX, REMEDY, SKIP_BAD
from birchbark.cli.talk import counted, progress, report_intake, say
from birchbark.errors import InputError


@click.command(epilog="Example: birchbark index add articles.index new-articles/")
@INDEX
@click.argument("collection")
@FORMAT
@ENCODING
@SKIP_BAD
def add(
    index: Path, collection: str, format_name: str | None, encoding: str, skip_bad: bool
) -> None:
    """Add the documents of COLLECTION to INDEX; those with a known id are replaced."""
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.index.writer import IndexWriter
    from birchbark.pipeline.keeping import complete, kept_by
    from birchbark.score.model import load_scorer

    intake = Intake(skip_bad, encoding, REMEDY)
    with IndexWriter(index) as writer:
        kept = kept_by(writer, load_scorer)  # what would fail fails before any change
        before, read = len(writer), 0
        with progress("adding") as advance:
            for document in counted(read_collection(collection, intake, format_name), advance):
                writer.add(document)
                read += 1
        new = len(writer) - before
    say(f"added {new:,} documents and replaced {read - new:,}; {before + new:,} in {index}")
    report_intake(intake)
    with IndexWriter(index) as writer:
        missing = writer.incomplete()
        if missing:
            with progress("computing " + ", ".join(missing), sum(missing.values())) as advance:
                complete(writer, kept, advance)
    link(index)


@click.command(epilog="Example: birchbark index delete articles.index --ids withdrawn.txt")
@INDEX
@click.argument("doc_ids", nargs=-1)
@click.option("--ids", type=FILE, help="File of doc_ids, one a line.")
def delete(index: Path, doc_ids: tuple[str, ...], ids: Path | None) -> None:
    """Delete documents from INDEX; all of them must be there."""
    from birchbark.collection.lines import decoded_lines
    from birchbark.index.writer import IndexWriter

    listed = [line for line in decoded_lines(ids) if line.strip()] if ids else []
    wanted = list(dict.fromkeys([*doc_ids, *listed]))
    if not wanted:
        raise InputError("no document to delete", remedy="name ids, or a file of them by --ids")
    with IndexWriter(index) as writer:
        for doc_id in wanted:
            if not writer.delete(doc_id):
                raise InputError(
                    f"no document {doc_id}", where=str(index), remedy="nothing changed"
                )
        left = len(writer)
    say(f"deleted {len(wanted):,} documents; {left:,} in {index}")


@click.command(epilog="Example: birchbark index merge articles.index")
@INDEX
def merge(index: Path) -> None:
    """Rewrite INDEX as one part, without what was deleted; readers are not disturbed."""
    from birchbark.index.writer import IndexWriter

    with IndexWriter(index) as writer:
        writer.merge()
        say(f"{len(writer):,} documents in one part in {index}")
    link(index)
