"""`birchbark index attach` and `detach`: what is computed of documents once, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.options import INDEX, grouped, refuse_void
from birchbark.cli.talk import progress, say
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.pipeline.keeping import Keeping

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
        help="Which segments: sentences, paragraphs, sections, windows:SIZE/OVERLAP in words, "
        "whole, title or text (each alone).",
    ),
)


def keepings_of(tokens: str | None, vectors: str | None, bits: int, segments: str) -> list[Keeping]:
    """What is to be kept beside the postings; the models are loaded."""
    from birchbark.checkpoint.named import lasting_name
    from birchbark.pipeline import keeping
    from birchbark.score.model import load_scorer
    from birchbark.segment.named import parse_segmenter

    refuse_void()
    if segments != "sentences" and not (tokens or vectors):
        raise InputError("--segments does nothing without --tokens or --vectors")
    segmenter, keepings = parse_segmenter(segments), []
    if tokens:
        keepings.append(keeping.tokens(load_scorer(tokens), segmenter, lasting_name(tokens)))
    if vectors:
        keepings.append(
            keeping.vectors(load_scorer(vectors), segmenter, lasting_name(vectors), bits)
        )
    return keepings


def keep(index: Path, keepings: Sequence[Keeping]) -> None:
    """Compute what is to be kept, and say so."""
    from birchbark.index.writer import IndexWriter

    for keeping in keepings:
        label = f"computing {keeping.name}"
        with IndexWriter(index) as writer, progress(label, len(writer)) as advance:
            keeping.attach(writer, advance)
        say(f"{keeping.name} of {keeping.schema.config['segments']} are kept in {index}")
    link(index)


def link(index: Path) -> None:
    """Make the graphs by which many vectors are searched, where they lack."""
    from birchbark.index.reader import Index
    from birchbark.index.writer import IndexWriter
    from birchbark.pipeline.keeping import make_graphs, without_graphs
    from birchbark.retrieve.graphs import installed

    vectors = without_graphs(Index(index))
    if vectors and installed():
        with IndexWriter(index) as writer, progress("linking vectors", vectors) as advance:
            make_graphs(writer, advance)
    elif vectors:
        say(
            f"note: searching {vectors:,} vectors looks at each of them; "
            "with pip install 'birchbark[dense]' at a few"
        )


@click.command(epilog="Example: birchbark index attach articles.index --vectors all-MiniLM-L6-v2")
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
    keep(index, keepings_of(tokens, vectors, int(vector_bits), segments))


@click.command(epilog="Example: birchbark index detach articles.index vectors")
@INDEX
@click.argument("name")
def detach(index: Path, name: str) -> None:
    """Drop the tokens or vectors that INDEX keeps."""
    from birchbark.index.writer import IndexWriter

    with IndexWriter(index) as writer:
        writer.detach(name)
    say(f"{index} keeps no {name} any more")
