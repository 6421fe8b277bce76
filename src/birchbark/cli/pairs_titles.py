"""`birchbark pairs title-abstract`: a collection's own titles and texts become training pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from birchbark.cli import pairs_parts as parts
from birchbark.cli.options import FORMAT, REMEDY, SKIP_BAD
from birchbark.cli.talk import counted, progress, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from birchbark.collection.intake import Intake
    from birchbark.records import Document, Pair


F = TypeVar("F", bound=Callable[..., None])


def _chance(name: str, default: float, text: str) -> Callable[[F], F]:
    """An option that is a probability."""
    option = click.FloatRange(0, 1)
    return click.option(name, type=option, default=default, show_default=True, help=text)


@click.command(
    "title-abstract",
    epilog="Example: birchbark pairs title-abstract articles.jsonl --false 0.65 --shuffle 0.2 "
    "--output pairs.tsv",
    short_help="From titles and texts alone: nobody judged anything.",
)
@click.argument("collection")
@parts.OUTPUT
@FORMAT
@click.option("--title-field", default="title", show_default=True, metavar="FIELD")
@click.option("--text-field", default="text", show_default=True, metavar="FIELD")
@click.option(
    "--false",
    "share",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.65,
    show_default=True,
    help="Share of pairs whose text is another document's.",
)
@_chance("--stop-words", 0.4, "Chance that a title loses its stop words.")
@_chance("--short-title", 0.2, "Chance that a part of a title is asked, a quarter or more of it.")
@_chance("--shuffle", 0.0, "Chance that a title's words are asked in another order.")
@_chance("--short-text", 0.3, "Chance that a part of a text is taken.")
@_chance("--title-title", 0.1, "Chance that a title is paired with titles.")
@_chance("--swap", 0.1, "Chance that a text is asked, and paired with titles.")
@parts.LIMIT
@parts.SEED
@parts.ENCODING
@SKIP_BAD
def titles(
    collection: str,
    output: Path,
    format_name: str | None,
    title_field: str,
    text_field: str,
    share: float,
    limit: int | None,
    seed: int,
    encoding: str,
    skip_bad: bool,
    **chances: float,
) -> None:
    """Pair the title of each document of COLLECTION with its text, and with those of others.

    So a model learns from a collection that nobody judged. A title stands for a query; since it is
    unlike one, some are changed. The title asked is the query, under its document's id; its own
    text is relevant. A training cuts queries and texts where its configuration says so: the report
    that this comes from took 62 tokens and 447 (query_length = 62, max_length = 512). The
    collection is read three times.
    """
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.collection.judged import judged_pairs, with_negatives
    from birchbark.pairs.anywhere import from_collection
    from birchbark.pairs.title_text import Changes, TitleTexts, both, others

    parts.check_outputs(output, split=False)
    found, most = TitleTexts(Changes(**chances), seed), math.ceil(others(share))

    def documents(intake: Intake, advance: Callable[[int], None]) -> Iterator[Document]:
        read = read_collection(collection, intake, format_name)
        return both(counted(read, advance), title_field, text_field)

    with progress("making queries of titles") as advance:
        found.add(documents(Intake(skip_bad, encoding, REMEDY), advance))
    qrels = found.own()
    if most:
        with progress("drawing documents") as advance:
            read = documents(Intake(skip_bad, encoding), advance)
            doc_ids = (d.doc_id for d in read if d.doc_id in found.queries)
            drawn = from_collection(qrels, doc_ids, most, seed)
        qrels = with_negatives(qrels, found.strangers(drawn, share))
    intake = Intake(skip_bad, encoding, REMEDY)

    def pairs(advance: Callable[[int], None]) -> Iterable[Pair]:
        read = documents(intake, advance)
        return judged_pairs(found.queries.values(), qrels, read, intake, found.texts)

    parts.write_and_tell(pairs, output, intake, limit)
    if found.without:
        say(f"  note: {found.without:,} documents lack a title or a text, and have no pair")
    for change, times in sorted(found.done.items()):
        say(f"  {times:,} {change}")
