"""`birchbark index`: how is an index built, changed, checked and described?"""

from __future__ import annotations

from dataclasses import replace as replaced
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.arguments import is_count
from birchbark.cli.console import notify, report_intake
from birchbark.cli.index_attach import (
    NO_VECTORS,
    attach_and_report,
    attach_command,
    detach_command,
    make_precomputations,
    vectors_option,
)
from birchbark.cli.index_inspect import stats
from birchbark.cli.index_of_folder import build_from, default_schema
from birchbark.cli.index_sync import sync
from birchbark.cli.index_update import add, delete, merge
from birchbark.cli.options import (
    BAD_RECORD_REMEDY,
    PATH,
    check_given_options,
    encoding_option,
    format_option,
    option,
    replace_option,
    skip_bad_option,
)
from birchbark.errors import InputError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.index.index import Index

NOTED_DOCUMENTS = 1_000  # looked at for fields that are missing


class _DefaultToBuild(click.Group):
    """A group that reads `birchbark index COLLECTION …` as `birchbark index build COLLECTION …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            if not any(a.split("=")[0] in {"--to", "-h", "--help"} for a in args):
                names = ", ".join(self.commands)
                ctx.fail(f"{args[0]!r} is none of {names}; to build an index, set --to INDEX")
            args = ["build", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_DefaultToBuild,
    epilog="Example: birchbark index articles/ --to articles.index",
    short_help="Build, change, check or describe an index.",
)
def command() -> None:
    """Build an index from a collection, or change, check or describe one.

    `birchbark index COLLECTION --to INDEX` is short for `birchbark index build …`.
    """


@command.command(
    epilog="Example: birchbark index build articles/ --to articles.index --vectors",
    short_help="Build an index from a collection.",
)
@click.argument("collection")
@option("--to", "directory", required=True, type=PATH, help="Folder to write the index to.")
@format_option
@option(
    "--analyzer",
    metavar="NAME",
    help="How the text of documents and queries is split into terms: english, unstemmed, porter, "
    "plain, wordpiece, porter+wordpiece, cjk (Chinese, Japanese, Korean), or a language such as "
    "german; an unknown name lists them all. With +parts, as in german+parts, parts of joined "
    "words such as config.yaml are found as well.  "
    f"[default: {defaults.FILE_ANALYZER} for a folder of files, else {defaults.ANALYZER}]",
)
@option(
    "--vocabulary",
    default=defaults.MODEL,
    metavar="MODEL",
    help="Model whose WordPiece vocabulary the analyzers wordpiece and porter+wordpiece use.",
)
@option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME[=FIELD+FIELD]",
    help="Field to index, and the document fields that it joins; repeat for several.  "
    f"[default: {defaults.INDEXED_FIELD}={'+'.join(defaults.INDEXED_FIELD_PARTS)}; of a folder, "
    f"{defaults.INDEXED_FIELD} has the path, too, and {defaults.FILE_NAMES_FIELD} the path alone]",
)
@option(
    "--keyword",
    "keywords",
    multiple=True,
    metavar="FIELD",
    help="Document field that searches can filter by; repeat for several. Folders "
    "always have path, folder, type, language and modified, and e-mails from, to, cc and date.",
)
@option(
    "--weighted-terms",
    "weighted",
    multiple=True,
    metavar="FIELD[=STEPS]",
    help='Document field of terms with weights, as SPLADE computes them, such as {"bee": 1.5}; '
    "repeat for several. Weights are rounded to 1/STEPS; a term whose weight rounds to 0 is not "
    "indexed.  "
    f"[default STEPS: {defaults.WEIGHT_STEPS}]",
)
@option(
    "--include",
    multiple=True,
    metavar="PATTERN",
    help="Of a folder, read only files that match this pattern, as in .gitignore: *.md, docs/**; "
    "repeat for several.",
)
@option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Of a folder, do not read files that match this pattern; repeat for several.",
)
@option(
    "--follow-links",
    is_flag=True,
    help="Of a folder, also read files outside of it to which links in it lead, and let a service "
    "show them. Whoever can write to the folder can then have any file read. Links that stay in "
    "the folder are always followed.",
)
@option(
    "--read",
    "read",
    multiple=True,
    default=defaults.READ_FIELDS,
    metavar="FIELD",
    help="Document field that models read after the title; repeat for several, such as abstract "
    "and body. They are also what the default field joins.",
)
@option(
    "--forward-index",
    is_flag=True,
    help="Also store the terms of each document, to make RM3 faster.",
)
@option(
    "--shards",
    type=click.IntRange(1),
    metavar="N",
    help="Divide the index into N shards, each a folder that is an index by itself, and build them "
    "in parallel. Searches are the same.  [default: an index in one piece]",
)
@vectors_option
@encoding_option("the collection's files")
@skip_bad_option
@replace_option("index")
def build(
    collection: str,
    directory: Path,
    format_name: str | None,
    analyzer: str | None,
    vocabulary: str,
    fields: tuple[str, ...],
    read: tuple[str, ...],
    keywords: tuple[str, ...],
    weighted: tuple[str, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    follow_links: bool,
    forward_index: bool,
    shards: int | None,
    encoding: str,
    skip_bad: bool | None,
    replace: bool,
    vectors: str | None,
) -> None:
    """Index COLLECTION: a file, a folder, pydocs, or ir_datasets:ID.

    \b
    jsonl   one object per line: id, title, text and any other fields
    tsv     id TAB text, id TAB title TAB text, or id TAB url TAB title TAB text
    trec    <DOC>…</DOC>, a file or a folder of files
    folder  text, Markdown, HTML, source code and, with pip install 'birchbark[files]', PDF, Word,
            EPUB, manual pages and more: one document per file
    beir    a folder with corpus.jsonl, in BEIR's layout
    nyt     The New York Times Annotated Corpus: folders, XML files or archives
    wapo    the TREC Washington Post Collection, one object per line
    cord19  metadata.csv of CORD-19, with the full texts beside it
    car     TREC CAR's paragraphs; needs pip install 'birchbark[car]'
    parquet a file or a folder of files; needs pip install 'birchbark[parquet]'
    pydocs  the documentation in this Python's standard library
    """
    from birchbark.artifact import refuse_existing
    from birchbark.checkpoint.locate import load_vocabulary
    from birchbark.collection.parsing.intake import Intake
    from birchbark.index.shards import is_index

    check_given_options()
    remedy = "choose another path, or replace it: --replace"
    if is_index(directory):
        remedy = (
            "read what has changed in its folder: birchbark index sync "
            f"{quote(str(directory))}; or {remedy}"
        )
    refuse_existing(directory, replace=replace, remedy=remedy)
    static = vectors != NO_VECTORS
    computed = vectors if static else None
    precomputations = make_precomputations(None, computed)
    default = default_schema(collection, format_name)
    analyzer = analyzer or default.analyzer
    wordpieces = load_vocabulary(vocabulary) if "wordpiece" in analyzer else None
    schema = replaced(
        default,
        analyzer=analyzer,
        vocabulary=wordpieces,
        keywords=keywords,
        forward=forward_index,
        weighted=_parse_weighted(weighted),
    )
    schema = replaced(schema, fields=_parse_fields(fields)) if fields else schema
    schema = schema.reading(read)
    intake = Intake(skip_bad, encoding, BAD_RECORD_REMEDY, include, exclude, follow_links)
    index = build_from(
        collection,
        directory,
        intake,
        schema=schema,
        format_name=format_name,
        replace=replace,
        shards=shards,
        static=static,
    )
    if unread := index.unread_fields:
        notify(f"note: searched but not read by models (see --read): {', '.join(unread)}")
    note_missing_fields(index)
    searched = index.fields if fields else index.weighted
    uses = dict.fromkeys(keywords, "filtered by") | dict.fromkeys(searched, "searched")
    for name, use in uses.items():
        number = index.filter_number(name) if name in index.keywords else index.field_number(name)
        of_parts = [part.fields[number] for part in index.parts]
        if all(part.first_term == part.end_term for part in of_parts):
            notify(f"note: no document has the field {name}, which is to be {use}")
    of_words = [name for name in index.fields if name not in index.weighted]
    counts = [plural(len(index), "document")]
    for name in of_words:
        tokens = plural(index.totals(name).tokens, "token")
        counts.append(tokens if len(of_words) == 1 else f"{tokens} of {name}")
    notify(f"indexed {', '.join(counts)}, in {directory}")
    report_intake(intake)
    if precomputations:
        attach_and_report(directory, precomputations)
    if not vectors:
        notify(
            "vectors by BERT would make searches faster and better still: compute them with "
            f"`birchbark index attach {quote(str(directory))}`, or let `birchbark serve "
            f"{quote(str(directory))}` compute them while idle"
        )


def note_missing_fields(index: Index) -> None:
    """Note fields that models are to read, but the first documents lack.

    Documents that have only a title lack nothing.
    """
    first = list(islice(index, NOTED_DOCUMENTS))
    found = {name for document in first for name, value in document.fields.items() if value}
    missing = [name for name in index.read_fields if name not in found]
    others = sorted(found - {"title", *index.read_fields, *index.keywords, *index.weighted})
    if not missing or (missing == [*defaults.READ_FIELDS] and not others):
        return
    which = "no document" if len(first) == len(index) else f"none of the first {len(first):,}"
    notify(
        f"note: {which} has {' or '.join(missing)}, which models are to read (see --read); found: "
        f"{', '.join(others) or 'title'}"
    )


def _parse_fields(fields: tuple[str, ...]) -> dict[str, list[str]]:
    """Return indexed field → the document fields that it joins.

    A field given without =FIELD joins only the document field of the same name.
    """
    joined: dict[str, list[str]] = {}
    for field in fields:
        name, _, parts = field.partition("=")
        if name in joined:
            raise InputError(
                f"--field is given twice for the field {name!r}",
                remedy=f"join both: {name}={'+'.join(joined[name])}+{parts or name}",
            )
        joined[name] = (parts or name).split("+")
    return joined


def _parse_weighted(weighted: tuple[str, ...]) -> dict[str, int]:
    """Return weighted field → steps per 1 of weight."""
    steps = {}
    for field in weighted:
        name, equals, number = field.partition("=")
        if equals and not is_count(number):
            raise InputError("invalid steps of --weighted-terms", found=field, wanted="FIELD=100")
        if name in steps:
            raise InputError(f"--weighted-terms {name} is given twice")
        steps[name] = int(number) if equals else defaults.WEIGHT_STEPS
    return steps


for subcommand in (add, delete, sync, attach_command, detach_command, merge, stats):
    command.add_command(subcommand)
