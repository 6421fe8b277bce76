"""`birchbark index attach` and `detach`: how are token ids and vectors stored in an index?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.cli.console import notify, progress
from birchbark.cli.options import check_given_options, index_argument, option
from birchbark.cli.report_vectors import report_rounding, report_vectors
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.pipeline.stored.precompute import Precomputation
    from birchbark.score.scorer import Scorer

NO_VECTORS = "none"


def _check_model(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """Raise BadParameter if `--vectors`, whose value is optional, took a collection or an index."""
    files = ("config.json", "modules.json")
    if value and Path(value).exists() and not any((Path(value) / f).exists() for f in files):
        raise click.BadParameter(
            f"{value} is not a model; if it is the collection or the index, put it before --vectors"
        )
    return value


def _check_pooling(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """Raise InputError for a pooling that gives a vector per segment: models state theirs."""
    from birchbark.checkpoint.heads import is_per_token, parse_pooling
    from birchbark.errors import InputError

    if value and not is_per_token(parse_pooling(value)):
        raise InputError(
            f"--pooling {value} gives a vector per segment",
            wanted="tokens or tokens:LAYER",
            remedy="birchbark.checkpoint.pool.pool_model writes a model with this pooling",
        )
    return value


vectors_option = option(
    "--vectors",
    is_flag=False,
    flag_value=defaults.EMBEDDING,
    metavar="[MODEL]",
    callback=_check_model,
    help="Store the vectors of segments, so that searches are faster and compare the query "
    f"with all segments. MODEL is an embedding model, by default {defaults.EMBEDDING}. A new "
    f"index has vectors by {defaults.STATIC_EMBEDDING}, unless MODEL is {NO_VECTORS}.",
)


def make_precomputations(
    tokens: str | None,
    vectors: str | None,
    pooling: str | None = None,
    bits: str | None = None,
    segments: str = defaults.SEGMENTS,
) -> list[Precomputation]:
    """Return the precomputations that the options request, with their models loaded."""
    from birchbark.checkpoint.locate import absolute_model_name
    from birchbark.pipeline.stored.precompute import precompute_tokens, precompute_vectors
    from birchbark.pipeline.stored.vector_scorer import fast_copy
    from birchbark.score.load_scorer import load_scorer
    from birchbark.segment.by_name import parse_segmenter

    segmenter, precomputations = parse_segmenter(segments), []
    if tokens:
        name, scorer = absolute_model_name(tokens), load_scorer(tokens)
        precomputations.append(precompute_tokens(scorer, segmenter, name))
    if vectors:
        name, scorer = absolute_model_name(vectors), load_scorer(vectors, pooling=pooling)
        _check_static(scorer, vectors, segments)
        fast, per_number = None, int(bits) if bits else None
        if not pooling:
            fast = fast_copy(name, load_scorer)
        precomputations.append(precompute_vectors(scorer, segmenter, name, per_number, fast=fast))
    return precomputations


def _check_static(scorer: Scorer, model: str, segments: str) -> None:
    """Raise InputError for static vectors other than those that every search can use."""
    from birchbark.errors import InputError
    from birchbark.pipeline.stored.vector_scorer import bi_encoder, is_static

    encoder = bi_encoder(scorer)
    usual = (model, segments) == (defaults.STATIC_EMBEDDING, defaults.SEGMENTS)
    if encoder and is_static(encoder) and not usual:
        raise InputError(
            "an index stores no other static vectors than those of its own",
            wanted=f"--vectors {defaults.STATIC_EMBEDDING}, with --segments {defaults.SEGMENTS}",
            found=f"{model} with {segments}",
            remedy=f"search with --embedding {model}, which computes them when they are needed",
        )


def attach_and_report(index: Path, precomputations: Sequence[Precomputation]) -> None:
    """Compute and store attachments for all documents of `index`, and build its vector graphs."""
    from birchbark.index.sharded_writer import open_writer
    from birchbark.pipeline.stored.precompute import is_vectors, shown_name
    from birchbark.pipeline.stored.vector_sets import has_token_vectors, vector_sets
    from birchbark.pipeline.upkeep.update_index import attach, build_missing_graphs, lacking

    names = " and ".join(shown_name(precomputation.name) for precomputation in precomputations)
    with open_writer(index) as writer:
        count = max(lacking(writer, precomputation) for precomputation in precomputations)
        if count:
            notify(
                f"computing {names} of {plural(count, 'document')}; {index} can be searched "
                "meanwhile, and `birchbark index attach` resumes if interrupted"
            )
        stored = attach(writer, precomputations, progress)
        build_missing_graphs(writer, progress)
        attachments = writer.attachments
    for name, precomputation in zip(stored, precomputations, strict=True):
        segments = precomputation.schema.config["segments"]
        notify(f"{shown_name(name)} of {segments} are stored in {index}")
        report_rounding(index, precomputation)
    made = {
        (precomputation.schema.config["segments"], has_token_vectors(precomputation.schema))
        for precomputation in precomputations
    }
    if any(map(is_vectors, stored)):
        for name in vector_sets(attachments):
            config = attachments[name].config
            kind = config.get("segments"), has_token_vectors(attachments[name])
            if name not in stored and kind in made:
                notify(
                    f"note: the index also has {name} of {config.get('segments')} by "
                    f"{config.get('model')}: birchbark index detach {quote(str(index))} {name} "
                    "deletes them"
                )
    report_vectors(index)


@click.command(
    "attach",
    epilog="Example: birchbark index attach articles.index",
    short_help="Store vectors or token ids of segments.",
)
@index_argument
@option(
    "--tokens",
    metavar="MODEL",
    help="Store the token ids of segments for this model, so that searches need not split and "
    "tokenise documents.",
)
@vectors_option
@option(
    "--pooling",
    metavar="tokens[:LAYER]",
    callback=_check_pooling,
    help="Store a vector per token, for late interaction, which re-ranks but finds no "
    "candidates. MODEL is any encoder.",
)
@option(
    "--vector-bits",
    type=click.Choice(["16", "8", "4"]),
    help=f"Bits per number of a vector: 16 or 8, by default {defaults.VECTOR_BITS}; of a "
    f"vector per token, 8 or 4, by default {defaults.TOKEN_VECTOR_BITS}.",
)
@option(
    "--segments",
    default=defaults.SEGMENTS,
    metavar="METHOD",
    help="How documents are split: passages:SIZE, sentences, paragraphs, sections, "
    "windows:SIZE/OVERLAP (words), whole, title or text.",
)
def attach_command(
    index: Path,
    tokens: str | None,
    vectors: str | None,
    pooling: str | None,
    vector_bits: str | None,
    segments: str,
) -> None:
    """Compute the vectors or token ids of all segments, and store them in INDEX.

    Without --tokens and --vectors, these are vectors by the default embedding model. Documents that
    are added later get theirs when they are added. An index can hold vectors by several models, or
    of several kinds of segments; a search uses those of its embedding and segments. Other token
    ids, and other vectors of the same segments by the same model, are replaced. The index can be
    searched meanwhile. Repeat the command to resume an interrupted computation.
    """
    if not (tokens or vectors):
        vectors = click.get_current_context().params["vectors"] = defaults.EMBEDDING
    check_given_options()
    attach_and_report(index, make_precomputations(tokens, vectors, pooling, vector_bits, segments))


@click.command(
    "detach",
    epilog="Example: birchbark index detach articles.index vectors",
    short_help="Delete stored token ids or vectors.",
)
@index_argument
@click.argument("name")
def detach_command(index: Path, name: str) -> None:
    """Delete the attachment NAME (tokens, static, vectors, vectors-2, …) from INDEX."""
    from birchbark.index.sharded_writer import open_writer
    from birchbark.pipeline.stored.precompute import shown_name

    with open_writer(index) as writer:
        writer.detach(name)
    notify(f"deleted the {shown_name(name)} of {index}")
