"""`birchbark model extend`: words of a collection join a model's vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.options import ENCODING, FILE, FORMAT, OR_REPLACE, REMEDY, SKIP_BAD
from birchbark.cli.talk import counted, progress, report_intake, say

TOGETHER = 256  # documents that are tokenised at a time

if TYPE_CHECKING:
    from birchbark.checkpoint.tokenizer import Pieces
    from birchbark.records import Document


@click.command(
    "extend",
    epilog="Example: birchbark model extend all-MiniLM-L6-v2 articles.jsonl --words 1000 "
    "--to minilm-articles",
    short_help="Add a collection's frequent words to a vocabulary.",
)
@click.argument("model")
@click.argument("collection")
@click.option("--words", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--to", "target", type=FILE, required=True, help="Folder to make.")
@click.option("--replace", is_flag=True, help="Replace the folder that is there.")
@FORMAT
@ENCODING
@SKIP_BAD
def extend_command(
    model: str,
    collection: str,
    words: int,
    target: Path,
    replace: bool,
    format_name: str | None,
    encoding: str,
    skip_bad: bool,
) -> None:
    """Write MODEL again with the most frequent words of COLLECTION that its vocabulary lacks.

    What it read as several pieces it then reads as one token, which begins as their mean. Prints
    the words with their frequencies; and what titles and texts take, in tokens, before and after.
    """
    from birchbark.artifact import refuse_existing
    from birchbark.checkpoint.named import locate
    from birchbark.checkpoint.new_words import extend, new_words
    from birchbark.checkpoint.reader import open_any
    from birchbark.checkpoint.tokenizer import Pieces
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake

    source = locate(model)
    refuse_existing(target, replace=replace, remedy=OR_REPLACE)

    def documents(intake: Intake) -> Iterator[Document]:
        with progress("reading") as advance:
            yield from counted(read_collection(collection, intake, format_name), advance)

    before, intake = Pieces(open_any(source)), Intake(skip_bad, encoding, REMEDY)
    found = new_words(before, (d.contents for d in documents(intake)), words)
    extend(source, list(found), target, replace=replace)
    for word, times in found.items():
        click.echo(f"{word}\t{times}")
    after = Pieces(open_any(target))
    saved = _lengths(documents(Intake(skip_bad, encoding)), before, after)
    fewer = f" ({words:,} were asked for)" if len(found) < words else ""
    say(f"{target}: {len(found):,} words more{fewer}, {after.size:,} pieces in all")
    for part, (n, old, new) in saved.items():
        say(
            f"{part}: {old / n:.1f} tokens on average before, {new / n:.1f} after: "
            f"{1 - new / old:.1%} saved"
        )
    report_intake(intake)


def _lengths(
    documents: Iterator[Document], before: Pieces, after: Pieces
) -> dict[str, tuple[int, int, int]]:
    """Of titles and texts: how many there are, and their tokens before and after."""
    sums = {part: [0, 0, 0] for part in ("titles", "texts")}
    while some := list(islice(documents, TOGETHER)):
        for part, texts in (("titles", [d.title for d in some]), ("texts", [d.text for d in some])):
            there = [text for text in texts if text.strip()]
            own = sums[part]
            own[0] += len(there)
            for place, pieces in ((1, before), (2, after)):
                own[place] += sum(map(len, pieces.encode(there)))
    return {part: (n, old, new) for part, (n, old, new) in sums.items() if old}
