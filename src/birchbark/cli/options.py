"""Which options do several verbs share, and what do their words stand for?"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark.cli.talk import say
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.index.reader import Index
    from birchbark.pipeline.answer import Work
    from birchbark.pipeline.ranker import Ranker
    from birchbark.records import Query
    from birchbark.retrieve.first_stage import FirstStage
    from birchbark.retrieve.scoring import Model
    from birchbark.score.heads import Pooling
    from birchbark.score.session import NewSession

Command = Callable[..., Any]
NEEDS = {  # option → the one without which it does nothing
    "rm3_documents": "rm3",
    "rm3_terms": "rm3",
    "rm3_weight": "rm3",
    "rm3_max_df": "rm3",
    "embedding_weight": "embedding",
    "vector_bits": "vectors",
}
FILE = click.Path(path_type=Path)
DEFAULT_MODEL = "all-MiniLM-L6-v2"
FIRST_STAGE_OPTIONS = (
    "first_stage_model",
    "k1",
    "b",
    "match",
    "fields",
    "field_bm25",
    "filters",
    "rm3",
    "rm3_documents",
    "rm3_terms",
    "rm3_weight",
    "rm3_max_df",
)


def grouped(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, shown by --help in the order given."""
    return lambda command: functools.reduce(lambda c, option: option(c), reversed(options), command)


asked_options = grouped(
    click.option(
        "--queries", required=True, type=FILE, help="TSV (id TAB text), JSONL or TREC topics."
    ),
    click.option(
        "--topic-field",
        "topic_fields",
        multiple=True,
        default=("title",),
        show_default=True,
        metavar="PART",
        help="TREC topics: part to search with; repeat to join several.",
    ),
)

query_options = grouped(
    asked_options,
    click.option("--encoding", default="utf-8", show_default=True, help="Of the query file."),
)

first_stage_options = grouped(
    click.option(
        "--first-stage",
        "first_stage_model",
        type=click.Choice(["bm25", "tfidf"]),
        default="bm25",
        show_default=True,
        help="tfidf: cosine of tf-idf vectors.",
    ),
    click.option("--k1", default=0.9, show_default=True, help="BM25: term frequency saturation."),
    click.option("--b", default=0.4, show_default=True, help="BM25: length normalisation, 0 to 1."),
    click.option(
        "--match",
        default="or",
        show_default=True,
        metavar="HOW",
        help="Candidates hold any (or), every (and) or at least so many (a number) of the query's "
        "terms; all: every document is one.",
    ),
    click.option(
        "--field",
        "fields",
        multiple=True,
        metavar="NAME[=W]",
        help="Indexed field to search and its weight; repeat to add up several.  "
        "[default: contents=1]",
    ),
    click.option(
        "--field-bm25",
        "field_bm25",
        multiple=True,
        metavar="NAME=K1/B",
        help="BM25: k1 and b of one field, where they differ from --k1 and --b.",
    ),
    click.option(
        "--filter",
        "filters",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Only documents with this value; the index must be made with --keyword FIELD.",
    ),
    click.option("--rm3", is_flag=True, help="Expand the query by RM3."),
    click.option("--rm3-documents", default=10, show_default=True, help="RM3: feedback documents."),
    click.option("--rm3-terms", default=10, show_default=True, help="RM3: terms added."),
    click.option(
        "--rm3-weight", default=0.5, show_default=True, help="RM3: share of the original query."
    ),
    click.option(
        "--rm3-max-df",
        default=0.1,
        show_default=True,
        help="RM3: leave out terms that a larger share of the documents holds.",
    ),
)

ranker_options = grouped(
    click.option(
        "--model",
        default=DEFAULT_MODEL,
        show_default=True,
        help="A model directory, the name of a packaged model, or a hub id that `birchbark model "
        "fetch` has fetched.",
    ),
    click.option(
        "--pooling",
        metavar="HOW[:LAYER]",
        help="Compare embeddings, whatever head the model has: cls, mean or max over the tokens of "
        "a layer, 0 for the embeddings.  [default: as the model says, last layer]",
    ),
    click.option(
        "--device",
        type=click.Choice(["cpu", "cuda"]),
        default="cpu",
        show_default=True,
        help="cuda: a GPU, by torch (pip install 'birchbark[train]').",
    ),
    click.option("--depth", default=100, show_default=True, help="Candidates to re-rank."),
    click.option(
        "--segments",
        default="sentences",
        show_default=True,
        metavar="HOW",
        help="sentences, windows:SIZE/OVERLAP in words, or whole documents (whole).",
    ),
    click.option(
        "--aggregate",
        default="top:1,0.5,0.25",
        show_default=True,
        metavar="HOW",
        help="first, max, sum, mean, or top:W1,W2,… for the best segments.",
    ),
    click.option(
        "--first-stage-weight",
        default=0.4,
        show_default=True,
        metavar="A",
        help="a in a·first stage + (1 - a)·evidence.",
    ),
    click.option(
        "--first-stage-scale",
        type=click.Choice(["raw", "max", "minmax"]),
        default="max",
        show_default=True,
        help="How first-stage scores are scaled before.",
    ),
    click.option(
        "--max-segments",
        type=click.IntRange(1),
        metavar="N",
        help="Read the first N segments of each document.  [default: all]",
    ),
    click.option(
        "--max-length",
        type=click.IntRange(1),
        metavar="T",
        help="Read the first T tokens of each segment.  [default: all]",
    ),
    click.option(
        "--embedding",
        metavar="MODEL",
        help="A second scorer, an embedding model, asked for all candidates first: quick where the "
        "index keeps its vectors.",
    ),
    click.option(
        "--embedding-weight",
        default=0.5,
        show_default=True,
        metavar="E",
        help="Its share in the evidence.",
    ),
    click.option("--threads", type=click.IntRange(1), help="Processors for BERT.  [default: all]"),
    click.option(
        "--precision",
        type=click.Choice(["fp32", "int8"]),
        default="fp32",
        show_default=True,
        help="BERT's arithmetic. int8: faster, scores near fp32's (`birchbark model check`); the 5 "
        "segments that count most in each of the 20 best documents are read again in fp32.",
    ),
    click.option(
        "--scores",
        type=FILE,
        metavar="STORE",
        help="Folder that keeps BERT's scores: none of them is computed again.",
    ),
)


def _given() -> list[str]:
    """Names of the parameters that were given."""
    context = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    return [name for name in context.params if context.get_parameter_source(name) is given]


def refuse_of_bert(why: str) -> None:
    """Raise InputError for an option of BERT that was given, which would do nothing."""
    for name in _given():
        if name not in (
            *FIRST_STAGE_OPTIONS,
            "index",
            "text",
            "top",
            "first_stage_only",
            "as_json",
        ):
            raise InputError(f"{_spelled(name)} is for BERT", found=why)


def refuse_void() -> None:
    """Raise InputError for an option that was given and would do nothing."""
    context = click.get_current_context()
    for name in _given():
        needed = NEEDS.get(name)
        if needed and not context.params[needed]:
            raise InputError(f"{_spelled(name)} does nothing without {_spelled(needed)}")
        if name in ("k1", "b") and context.params["first_stage_model"] != "bm25":
            raise InputError(f"--{name} is for BM25", found="--first-stage tfidf")


def _spelled(name: str) -> str:
    return "--" + name.replace("_", "-")


def first_stage(
    first_stage_model: str,
    k1: float,
    b: float,
    match: str,
    fields: tuple[str, ...],
    field_bm25: tuple[str, ...],
    filters: tuple[str, ...],
    rm3: bool,
    rm3_documents: int,
    rm3_terms: int,
    rm3_weight: float,
    rm3_max_df: float,
) -> FirstStage:
    """The FirstStage that the options above describe."""
    from birchbark.retrieve.bm25 import BM25
    from birchbark.retrieve.first_stage import FirstStage
    from birchbark.retrieve.match import parse_match
    from birchbark.retrieve.rm3 import RM3
    from birchbark.retrieve.tfidf import TfIdf

    refuse_void()
    model = TfIdf() if first_stage_model == "tfidf" else BM25(k1, b)
    expansion = RM3(rm3_documents, rm3_terms, rm3_weight, rm3_max_df) if rm3 else None
    weights = parse_fields(fields or ("contents",))
    of_fields = parse_field_bm25(field_bm25)
    if of_fields and first_stage_model != "bm25":
        raise InputError("--field-bm25 is for BM25", found=f"--first-stage {first_stage_model}")
    if unknown := [name for name in of_fields if name not in weights]:
        raise InputError(
            f"--field-bm25 for the field {unknown[0]!r}, which is not searched",
            wanted=f"one of {', '.join(weights)}",
        )
    return FirstStage(
        model,
        weights,
        of_fields,
        match=parse_match(match),
        filters=parse_filters(filters),
        expansion=expansion,
    )


def parse_fields(fields: tuple[str, ...]) -> dict[str, float]:
    """Field → weight from NAME=WEIGHT; 1 where no weight is given."""
    found = {}
    for field in fields:
        name, _, weight = field.partition("=")
        try:
            found[name] = float(weight or 1)
        except ValueError:
            raise InputError("not a field weight", found=field, wanted="NAME=WEIGHT") from None
    return found


def parse_field_bm25(fields: tuple[str, ...]) -> dict[str, Model]:
    """Field → BM25 from NAME=K1/B."""
    from birchbark.retrieve.bm25 import BM25

    found: dict[str, Model] = {}
    for one in fields:
        name, _, numbers = one.partition("=")
        try:
            k1, b = map(float, numbers.split("/"))
        except ValueError:
            raise InputError("not a field's k1 and b", found=one, wanted="NAME=K1/B") from None
        found[name] = BM25(k1, b)
    return found


def parse_filters(filters: tuple[str, ...]) -> dict[str, str]:
    """Field → value from FIELD=VALUE."""
    found = {}
    for one in filters:
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            raise InputError("not a filter", found=one, wanted="FIELD=VALUE")
        found[name] = value
    return found


def ranker(
    model: str,
    pooling: str | None,
    device: str,
    depth: int,
    segments: str,
    aggregate: str,
    first_stage_weight: float,
    first_stage_scale: str,
    max_segments: int | None,
    max_length: int | None,
    embedding: str | None,
    embedding_weight: float,
    threads: int | None,
    precision: str,
) -> Ranker:
    """The Ranker that the options above describe."""
    from birchbark.combine.aggregate import parse_aggregation
    from birchbark.combine.interpolate import Interpolation, Scale
    from birchbark.pipeline.ranker import Ranker
    from birchbark.score.model import load_scorer
    from birchbark.score.precision import Precision
    from birchbark.segment.limit import Limit
    from birchbark.segment.named import parse_segmenter

    refuse_void()
    interpolation = Interpolation(first_stage_weight, Scale(first_stage_scale))
    aggregation, segmenter = parse_aggregation(aggregate), parse_segmenter(segments)
    pooled, session = parse_pooling(pooling) if pooling else None, sessions(device)
    scorer = load_scorer(model, threads, pooled, Precision(precision), session)
    exact = scorer if precision == "fp32" else load_scorer(model, threads, pooled)
    return Ranker(
        scorer,
        segmenter,
        aggregation,
        interpolation,
        depth,
        Limit(max_segments, max_length),
        load_scorer(embedding, threads, session=session) if embedding else None,
        embedding_weight,
        None if exact is scorer else exact,
    )


def sessions(device: str) -> NewSession | None:
    """How models are run on `device`; None for the processors, which need no torch."""
    if device == "cpu":
        return None
    from birchbark.train.torch_session import on_device

    return on_device(device)


def parse_pooling(text: str) -> Pooling:
    """The pooling that `text` names: cls, mean or max, with :LAYER or without."""
    from birchbark.score.heads import MODES, Pooling

    mode, colon, layer = text.partition(":")
    if mode not in MODES or bool(colon) != (layer.isascii() and layer.isdecimal()):
        raise InputError(
            "not a pooling", found=repr(text), wanted="cls, mean or max, or with a layer: mean:6"
        )
    return Pooling(mode, int(layer) if layer else None)


@contextmanager
def remembering(ranker: Ranker, scores: Path | None) -> Iterator[Ranker]:
    """`ranker`, which keeps its scores in the store `scores`; at the end it tells how many."""
    from dataclasses import replace

    from birchbark.score.remembering import Remembering
    from birchbark.score.store import ScoreStore

    if scores is None:
        yield ranker
        return
    stores: list[ScoreStore] = []
    asked: dict[str, Remembering] = {}  # by fingerprint: two roles may have one model
    roles: dict[str, Any] = {}
    with ExitStack() as stack:
        for role in ("scorer", "embedding", "precise"):
            if scorer := getattr(ranker, role):
                if scorer.fingerprint not in asked:
                    store = ScoreStore(scores, scorer, under=stores[0] if stores else None)
                    stores.append(stack.enter_context(store))
                    asked[scorer.fingerprint] = Remembering(scorer, store)
                roles[role] = asked[scorer.fingerprint]
        yield replace(ranker, **roles)
    not_kept = sum(store.not_kept for store in stores)
    scored, known = (sum(getattr(s, n) for s in asked.values()) for n in ("scored", "known"))
    lost = f", {not_kept:,} not kept" if not_kept else ""
    say(f"{scored:,} pairs scored, {known:,} known before{lost}; scores in {scores}")


def tell_work(work: Work, index: Index) -> None:
    """Say how much of the documents was read: what was not needed, and what was left out."""
    if work.by_vectors:
        say(f"{work.by_vectors:,} documents were scored by vectors that the index keeps")
    elif "vectors" in index.attachments and work.candidates:
        say("note: the index keeps vectors, but not of this model and these segments")
    if work.settled < work.candidates:
        reason = "the others cannot be among the best" if work.exact else "time was up"
        say(f"read {work.settled:,} of {work.candidates:,} documents: {reason}")
    elif not work.exact:
        say("time was up before the best were read again in fp32")
    if work.unread_tokens:
        say(
            f"not read, as asked: {work.unread_tokens:,} tokens of "
            f"{work.unread_documents:,} documents"
        )


def check_output(path: Path, tag: str | None) -> None:
    """Raise InputError now, not after the work, if a run could not be written."""
    if tag is not None and (not tag or len(tag.split()) != 1 or tag != tag.strip()):
        raise InputError("a tag is one word", found=repr(tag))
    if path.is_dir():
        raise InputError("is a folder", where=str(path), wanted="a file to write")
    place = path if path.exists() else next(p for p in path.absolute().parents if p.exists())
    if not os.access(place, os.W_OK):
        raise InputError("may not be written", where=str(place))


def load_queries(path: Path, topic_fields: tuple[str, ...], encoding: str) -> list[Query]:
    """The queries in `path`."""
    from birchbark.collection.queries import read_queries

    return read_queries(path, topic_fields, encoding)
