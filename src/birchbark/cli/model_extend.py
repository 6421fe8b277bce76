"""`birchbark model extend`: how are a collection's words added to a model's vocabulary?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.cli.console import counted, notify, progress, report_intake
from birchbark.cli.options import (
    BAD_RECORD_REMEDY,
    PATH,
    encoding_option,
    format_option,
    option,
    replace_option,
    skip_bad_option,
)

if TYPE_CHECKING:
    from birchbark.checkpoint.tokenizer import CheckpointTokenizer
    from birchbark.records import Document

BATCH = 256  # documents per call of the tokeniser


@click.command(
    "extend",
    epilog="Example: birchbark model extend all-MiniLM-L6-v2 articles.jsonl --words 1000 "
    "--to minilm-articles",
    short_help="Add a collection's frequent words to a vocabulary.",
)
@click.argument("model")
@click.argument("collection")
@option(
    "--words",
    type=click.IntRange(1),
    default=defaults.NEW_WORDS,
    help="Maximum number of words to add.",
)
@option("--to", "target", type=PATH, required=True, help="Folder to write.")
@replace_option("model")
@format_option
@encoding_option("the collection's files")
@skip_bad_option
def extend_command(
    model: str,
    collection: str,
    words: int,
    target: Path,
    replace: bool,
    format_name: str | None,
    encoding: str,
    skip_bad: bool | None,
) -> None:
    """Write a copy of MODEL whose vocabulary includes the most frequent new words of COLLECTION.

    A word that was split into several WordPieces becomes one token, whose embedding is initialised
    to the mean of theirs. The command prints the words with their frequencies, and the average
    numbers of tokens in titles and texts before and after.
    """
    from birchbark.artifact import refuse_existing
    from birchbark.checkpoint.checkpoint import open_any_head
    from birchbark.checkpoint.extend_vocabulary import extend, frequent_new_words
    from birchbark.checkpoint.locate import locate
    from birchbark.checkpoint.tokenizer import CheckpointTokenizer
    from birchbark.collection.documents import read_collection
    from birchbark.collection.parsing.intake import Intake

    source = locate(model)
    refuse_existing(target, replace=replace)

    def documents(intake: Intake) -> Iterator[Document]:
        with progress("reading") as advance:
            yield from counted(read_collection(collection, intake, format_name), advance)

    before = CheckpointTokenizer(open_any_head(source))
    intake = Intake(skip_bad, encoding, BAD_RECORD_REMEDY)
    new_words = frequent_new_words(before, (d.contents for d in documents(intake)), words)
    extend(source, list(new_words), target, replace=replace)
    for word, frequency in new_words.items():
        click.echo(f"{word}\t{frequency}")
    after = CheckpointTokenizer(open_any_head(target))
    lengths = _lengths(documents(Intake(skip_bad, encoding)), before, after)
    fewer = f" ({words:,} requested)" if len(new_words) < words else ""
    notify(f"{target}: words added: {len(new_words):,}{fewer}; {after.size:,} tokens in total")
    for field, (count, old, new) in lengths.items():
        notify(
            f"{field}: {old / count:.1f} tokens on average before, {new / count:.1f} after: "
            f"{1 - new / old:.1%} saved"
        )
    report_intake(intake)


def _lengths(
    documents: Iterator[Document], before: CheckpointTokenizer, after: CheckpointTokenizer
) -> dict[str, tuple[int, int, int]]:
    """Return field → (values that are not blank, total tokens before, total tokens after)."""
    sums = {field: [0, 0, 0] for field in ("titles", "texts")}
    while batch := list(islice(documents, BATCH)):
        fields = {"titles": [d.title for d in batch], "texts": [d.text for d in batch]}
        for field, all_texts in fields.items():
            texts = [text for text in all_texts if text.strip()]
            sums[field][0] += len(texts)
            for column, tokenizer in ((1, before), (2, after)):
                sums[field][column] += sum(map(len, tokenizer.encode(texts)))
    return {field: (count, old, new) for field, (count, old, new) in sums.items() if old}
