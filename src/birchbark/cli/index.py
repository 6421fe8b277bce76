"""`birchbark index`: a collection becomes an index on disk, and the index changes."""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.index_changes import add, delete, merge
from birchbark.cli.index_keep import KEPT, attach, detach, keep, keepings_of
from birchbark.cli.index_looks import stats, verify
from birchbark.cli.options import DEFAULT_MODEL, ENCODING, FILE, FORMAT, REMEDY, SKIP_BAD, given
from birchbark.cli.talk import counted, progress, report_intake, say
from birchbark.errors import InputError


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
    """Index COLLECTION: a file, a folder, the word pydocs, or ir_datasets:ID.

    \b
    jsonl   an object a line: id, title, text and any further fields; .gz too
    tsv     id TAB text, id TAB title TAB text, or id TAB url TAB title TAB text
    trec    <DOC>…</DOC>, a file or a folder of files
    folder  .txt, .md and .html files, one document each
    nyt     The New York Times Annotated Corpus: folders, XML files or archives
    wapo    the TREC Washington Post Collection, an object a line
    cord19  metadata.csv of CORD-19, with the full texts beside it
    pydocs  the documentation inside this Python's standard library
    """
    from birchbark.artifact import refuse_existing
    from birchbark.checkpoint.named import load_vocabulary
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.index.build import Schema, build_index

    remedy = "choose another name; or --replace it; or birchbark index add"
    refuse_existing(directory, replace=replace, remedy=remedy)
    keepings = keepings_of(tokens, vectors, int(vector_bits), segments)  # wrong models show
    if "vocabulary" in given() and "wordpiece" not in analyzer:
        raise InputError(f"--vocabulary does nothing with --analyzer {analyzer}")
    intake = Intake(skip_bad, encoding, REMEDY)
    pieces = load_vocabulary(vocabulary) if "wordpiece" in analyzer else None
    schema = Schema(analyzer, pieces, _parts(fields), keywords, forward)
    with progress("indexing") as advance:
        documents = counted(read_collection(collection, intake, format_name), advance)
        index = build_index(documents, directory, schema, replace=replace)
    totals = index.totals(index.fields[0])
    say(f"indexed {len(index):,} documents, {totals.tokens:,} terms, in {directory}")
    report_intake(intake)
    keep(directory, keepings)


def _parts(fields: tuple[str, ...]) -> dict[str, list[str]]:
    """Indexed field → the document's fields it joins: itself, where nothing else is said."""
    pairs = [field.partition("=") for field in fields or ("contents=title+text",)]
    return {name: (parts or name).split("+") for name, _, parts in pairs}


for verb in (add, delete, attach, detach, merge, verify, stats):
    command.add_command(verb)
