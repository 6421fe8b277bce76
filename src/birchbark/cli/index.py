"""`birchbark index`: a collection becomes an index on disk, and the index changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.options import DEFAULT_MODEL, FILE, grouped, refuse_void
from birchbark.cli.talk import counted, progress, report_intake, say
from birchbark.errors import ArtifactError, InputError

if TYPE_CHECKING:
    from birchbark.pipeline.keeping import Keeping

INDEX = click.argument("index", type=FILE)
FORMAT = click.option(
    "--format",
    "format_name",
    type=click.Choice(["jsonl", "tsv", "trec", "folder", "pydocs", "nyt", "wapo"]),
    help="Told from the name where not given.",
)
ENCODING = click.option(
    "--encoding", default="utf-8", show_default=True, help="Of the collection's files."
)
SKIP_BAD = click.option("--skip-bad", is_flag=True, help="Count and report bad records, and go on.")
KEPT = grouped(
    click.option(
        "--tokens",
        metavar="MODEL",
        help="Keep the token ids of segments as this model reads them: nothing is split and "
        "tokenised again.",
    ),
    click.option(
        "--vectors",
        metavar="MODEL",
        help="Keep the vectors of segments by this embedding model: it scores at once.",
    ),
    click.option(
        "--vector-bits",
        type=click.Choice(["16", "8"]),
        default="16",
        show_default=True,
        help="Of each number in a vector.",
    ),
    click.option(
        "--segments",
        default="sentences",
        show_default=True,
        metavar="HOW",
        help="Which segments: sentences, paragraphs, windows:SIZE/OVERLAP in words, or whole.",
    ),
)
REMEDY = "mend it, or leave out bad records with --skip-bad"


class _Verbs(click.Group):
    """Without one of its verbs, `birchbark index` builds."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            if not any(a.split("=")[0] in {"--to", "-h", "--help"} for a in args):
                verbs = ", ".join(self.commands)
                ctx.fail(f"{args[0]!r} is none of {verbs}; to index it, say where: --to INDEX")
            args = ["build", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_Verbs,
    epilog="Example: birchbark index articles/ --to articles.index",
    short_help="Index a collection; change, check, describe an index.",
)
def command() -> None:
    """Build an index from a collection, or change, check or describe one.

    `birchbark index COLLECTION --to INDEX` is short for `birchbark index build …`.
    """


@command.command(epilog="Example: birchbark index articles/ --to articles.index")
@click.argument("collection")
@click.option("--to", "directory", required=True, type=FILE, help="Where the index is written.")
@FORMAT
@click.option(
    "--analyzer",
    type=click.Choice(["english", "porter", "plain", "wordpiece", "porter+wordpiece"]),
    default="english",
    show_default=True,
    help="How text becomes terms; queries go through the same.",
)
@click.option(
    "--vocabulary",
    default=DEFAULT_MODEL,
    show_default=True,
    metavar="MODEL",
    help="Model whose WordPieces the last two take.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME[=PART+PART]",
    help="Indexed field and the document's fields it joins; repeat for several.  "
    "[default: contents=title+text]",
)
@click.option(
    "--keyword",
    "keywords",
    multiple=True,
    metavar="PART",
    help="Field of the documents to filter by; repeat for several.",
)
@click.option(
    "--forward",
    is_flag=True,
    help="Keep each document's terms too; else RM3 finds them in the stored text.",
)
@KEPT
@ENCODING
@SKIP_BAD
@click.option("--replace", is_flag=True, help="Replace the index that is there.")
def build(
    collection: str,
    directory: Path,
    format_name: str | None,
    analyzer: str,
    vocabulary: str,
    fields: tuple[str, ...],
    keywords: tuple[str, ...],
    forward: bool,
    encoding: str,
    skip_bad: bool,
    replace: bool,
    tokens: str | None,
    vectors: str | None,
    vector_bits: str,
    segments: str,
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
    from birchbark.index.build import Schema, build_index
    from birchbark.score.model import load_vocabulary

    if directory.exists() and not replace:
        raise InputError(
            "already exists",
            where=str(directory),
            remedy="choose another name; or --replace it; or birchbark index add",
        )
    keepings = _keepings(tokens, vectors, int(vector_bits), segments)  # wrong models come to light
    intake = Intake(skip_bad, encoding, REMEDY)
    pieces = load_vocabulary(vocabulary) if "wordpiece" in analyzer else None
    schema = Schema(analyzer, pieces, _parts(fields), keywords, forward)
    with progress("indexing") as advance:
        documents = counted(read_collection(collection, intake, format_name), advance)
        index = build_index(documents, directory, schema, replace=replace)
    totals = index.totals(index.fields[0])
    say(f"indexed {len(index):,} documents, {totals.tokens:,} terms, in {directory}")
    report_intake(intake)
    _keep(directory, keepings)


def _keepings(tokens: str | None, vectors: str | None, bits: int, segments: str) -> list[Keeping]:
    """What is to be kept beside the postings; the models are loaded."""
    from birchbark.pipeline import keeping
    from birchbark.score.model import load_scorer
    from birchbark.segment.named import parse_segmenter

    refuse_void()
    if segments != "sentences" and not (tokens or vectors):
        raise InputError("--segments does nothing without --tokens or --vectors")
    segmenter, keepings = parse_segmenter(segments), []
    if tokens:
        keepings.append(keeping.tokens(load_scorer(tokens), segmenter, _anywhere(tokens)))
    if vectors:
        keepings.append(keeping.vectors(load_scorer(vectors), segmenter, _anywhere(vectors), bits))
    return keepings


def _anywhere(model: str) -> str:
    """The name by which `model` is found from any working directory, to be kept in an index."""
    from birchbark.score.model import PACKAGES

    is_path = model not in PACKAGES and Path(model).is_dir()
    return str(Path(model).resolve()) if is_path else model


def _keep(index: Path, keepings: Sequence[Keeping]) -> None:
    from birchbark.index.writer import IndexWriter

    for keeping in keepings:
        label = f"computing {keeping.name}"
        with IndexWriter(index) as writer, progress(label, len(writer)) as advance:
            keeping.attach(writer, advance)
        say(f"{keeping.name} of {keeping.schema.config['segments']} are kept in {index}")


def _parts(fields: tuple[str, ...]) -> dict[str, list[str]]:
    """Indexed field → the document's fields it joins: itself, where nothing else is said."""
    pairs = [field.partition("=") for field in fields or ("contents=title+text",)]
    return {name: (parts or name).split("+") for name, _, parts in pairs}


@command.command(epilog="Example: birchbark index add articles.index new-articles/")
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
    from birchbark.pipeline.keeping import complete
    from birchbark.score.model import load_scorer

    intake = Intake(skip_bad, encoding, REMEDY)
    with IndexWriter(index) as writer:
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
                complete(writer, load_scorer, advance)


@command.command(epilog="Example: birchbark index delete articles.index --ids withdrawn.txt")
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


@command.command(epilog="Example: birchbark index attach articles.index --vectors all-MiniLM-L6-v2")
@INDEX
@KEPT
def attach(
    index: Path, tokens: str | None, vectors: str | None, vector_bits: str, segments: str
) -> None:
    """Compute token ids or vectors of segments once, and keep them in INDEX.

    Documents that are added later get theirs as they come. What was computed before with other
    choices is replaced; an interrupted computation goes on where it was.
    """
    if not (tokens or vectors):
        raise InputError("nothing to compute", remedy="--tokens MODEL or --vectors MODEL")
    _keep(index, _keepings(tokens, vectors, int(vector_bits), segments))


@command.command(epilog="Example: birchbark index detach articles.index vectors")
@INDEX
@click.argument("name")
def detach(index: Path, name: str) -> None:
    """Drop the tokens or vectors that INDEX keeps."""
    from birchbark.index.writer import IndexWriter

    with IndexWriter(index) as writer:
        writer.detach(name)
    say(f"{index} keeps no {name} any more")


@command.command(epilog="Example: birchbark index merge articles.index")
@INDEX
def merge(index: Path) -> None:
    """Rewrite INDEX as one part, without what was deleted; readers are not disturbed."""
    from birchbark.index.writer import IndexWriter

    with IndexWriter(index) as writer:
        writer.merge()
        say(f"{len(writer):,} documents in one part in {index}")


@command.command(epilog="Example: birchbark index verify articles.index")
@INDEX
def verify(index: Path) -> None:
    """Check that every file of INDEX is as it was written; name what is damaged."""
    from birchbark.index.layout import Manifest
    from birchbark.index.verify import damage

    with progress("checking", len(Manifest.read(index).parts)) as advance:
        found = damage(index, advance)
    for line in found:
        click.echo(line)
    if found:
        raise ArtifactError("damaged", where=str(index), remedy="build the index again")
    say(f"{index}: all checksums hold")


@command.command(epilog="Example: birchbark index stats articles.index")
@INDEX
def stats(index: Path) -> None:
    """Print sizes, fields, terms and lengths of INDEX."""
    from birchbark.index.describe import describe
    from birchbark.index.reader import Index

    for name, value in describe(Index(index)).items():
        shown = f"{value:,}" if isinstance(value, int) else value
        click.echo(f"{name}\t{shown}")
