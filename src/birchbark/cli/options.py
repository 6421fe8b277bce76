"""Which options do several verbs share, and which of them would do nothing?"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from birchbark.errors import InputError

Command = Callable[..., Any]
NEEDS = {  # option → the one without which it does nothing
    "rm3_documents": "rm3",
    "rm3_terms": "rm3",
    "rm3_weight": "rm3",
    "rm3_max_df": "rm3",
    "vector_bits": "vectors",
}
FILE = click.Path(path_type=Path)
DEFAULT_MODEL = "birchbark-minilm-l6"
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


INDEX = click.argument("index", type=FILE)
FORMAT = click.option(
    "--format",
    "format_name",
    type=click.Choice(["jsonl", "tsv", "trec", "folder", "pydocs", "nyt", "wapo", "cord19"]),
    help="Told from the name where not given.",
)
ENCODING = click.option(
    "--encoding", default="utf-8", show_default=True, help="Of the collection's files."
)
SKIP_BAD = click.option("--skip-bad", is_flag=True, help="Count and report bad records, and go on.")
DATA = click.option(
    "--data",
    type=FILE,
    metavar="DIR",
    help="Folder that paths of data start from.  [default: $BIRCHBARK_DATA, or ../shared/data if "
    "it is there]",
)
OR_REPLACE = "choose another name, or --replace it"
REMEDY = "mend it, or leave out bad records with --skip-bad"


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
        type=click.Choice(["bm25", "tfidf", "dense"]),
        default="bm25",
        show_default=True,
        help="tfidf: cosine of tf-idf vectors. dense: cosine of the vectors that the index keeps.",
    ),
    click.option("--k1", default=0.9, show_default=True, help="BM25: term frequency saturation."),
    click.option("--b", default=0.4, show_default=True, help="BM25: length normalisation, 0 to 1."),
    click.option(
        "--match",
        metavar="HOW",
        help="Candidates hold any (or), every (and) or at least so many (a number) of the query's "
        "terms; all: every document is one. ann:K: the K documents nearest by the index's vectors; "
        "ann:K+or, ann:K+and, …: these, too.  [default: or; of dense, as many nearest ones as are "
        "wanted]",
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
        help="A model directory, a name that `birchbark model list` shows, or a hub id that "
        "`birchbark model fetch` has fetched.",
    ),
    click.option(
        "--pooling",
        metavar="HOW[:LAYER]",
        help="Compare embeddings, whatever head the model has: cls, mean or max over the tokens of "
        "a layer, 0 for the embeddings; or tokens, each of the query with its most similar one of "
        "the text.  [default: as the model says, last layer]",
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
        metavar="HOW",
        help="sentences, paragraphs, sections, windows:SIZE/OVERLAP in words, whole documents "
        "(whole), or of each the title or the text alone.  "
        "[default: sentences; windows:150/50 where the model judges documents, PARADE]",
    ),
    click.option(
        "--aggregate",
        metavar="HOW",
        help="first, max, sum, mean, or top:W1,W2,… for the best segments.  "
        "[default: top:1,0.5,0.25]",
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
    click.option(
        "--duo",
        metavar="MODEL",
        help="Rank the best anew by a model that compares two texts (duoBERT).",
    ),
    click.option(
        "--duo-depth", default=10, show_default=True, metavar="K", help="So many of the best."
    ),
    click.option(
        "--duo-aggregate",
        default="sum",
        show_default=True,
        metavar="HOW",
        help="How comparisons become scores: sum, binary, min, max, or sample:M.",
    ),
    click.option(
        "--duo-most",
        type=click.IntRange(1),
        metavar="N",
        help="Refuse, before any work, what needs more than N comparisons.  [default: any number]",
    ),
    click.option(
        "--stages",
        type=FILE,
        metavar="FILE",
        help="TOML: a [[stage]] for each of several rankers, which rank in turn what the one "
        "before found best. Keys are these options' names; what a stage does not say, they say.",
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


def given() -> list[str]:
    """Names of the parameters that were given."""
    context = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    return [name for name in context.params if context.get_parameter_source(name) is given]


def refuse_of_bert(why: str, *others: str) -> None:
    """Raise InputError for an option of BERT that was given, which would do nothing.

    others: names of options that have nothing to do with BERT.
    """
    for name in given():
        if name not in (*FIRST_STAGE_OPTIONS, "index", "first_stage_only", *others):
            raise InputError(f"{spelled(name)} is for BERT", found=why)


def refuse_void() -> None:
    """Raise InputError for an option that was given and would do nothing."""
    context = click.get_current_context()
    for name in given():
        needed = NEEDS.get(name)
        if needed and not context.params[needed]:
            raise InputError(f"{spelled(name)} does nothing without {spelled(needed)}")
        model = context.params.get("first_stage_model", "bm25")
        if name in ("k1", "b") and model != "bm25":
            raise InputError(f"--{name} is for BM25", found=f"--first-stage {model}")
        if name in ("rm3", "field_bm25") and model == "dense":
            raise InputError(f"{spelled(name)} ranks by terms", found="--first-stage dense")


def spelled(name: str) -> str:
    """An option as it is given."""
    return "--" + name.replace("_", "-")


def seconds(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """As `parse_seconds`, for options."""
    return parse_seconds(text)


time_option = functools.partial(click.option, callback=seconds, metavar="TIME")


def parse_seconds(text: str | None) -> float | None:
    """Seconds from 500ms, 2s or 1.5; None for None."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?)\s*(ms|s|)", text) if text is not None else None
    if text is not None and found is None:
        raise InputError("not a time", found=text, wanted="500ms, or 2s")
    return float(found[1]) / (1000 if found[2] == "ms" else 1) if found else None
