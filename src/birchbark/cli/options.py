"""Which options do several commands share?"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

from birchbark import defaults
from birchbark.cli.grouped_help import Decorator, option_group
from birchbark.errors import InputError
from birchbark.option_rules import check_options
from birchbark.section import Section

PATH = click.Path(path_type=Path)
BAD_RECORD_REMEDY = "correct it, or skip it with --skip-bad"


def option(*names: str, **settings: Any) -> Decorator:
    """Return a click option whose default is shown by --help."""
    return click.option(*names, show_default=True, **settings)


def encoding_option(files: str) -> Decorator:
    """Return the option --encoding. files: noun for the files that it applies to."""
    return option("--encoding", default=defaults.ENCODING, help=f"Encoding of {files}.")


def replace_option(artifact: str) -> Decorator:
    """Return the flag --replace. artifact: noun for what the command writes."""
    return option("--replace", is_flag=True, help=f"Replace an existing {artifact}.")


json_option = option(
    "--json", "as_json", is_flag=True, help="Print JSON, for programs, instead of a table."
)


class _IndexPath(click.Path):
    """The path of an index; of a folder that is none, the index of its files, FOLDER.index."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from birchbark.index.layout import index_beside
        from birchbark.index.shards import is_index

        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        beside = index_beside(path)
        return beside if path.is_dir() and is_index(beside) and not is_index(path) else path


index_argument = click.argument("index", type=_IndexPath())
format_option = option(
    "--format",
    "format_name",
    type=click.Choice(
        [
            *("jsonl", "tsv", "trec", "folder", "beir", "pydocs", "nyt", "wapo", "cord19", "car"),
            "parquet",
        ]
    ),
    help="Format of the collection.  [default: detected from its name]",
)
skip_bad_option = option(
    "--skip-bad/--strict",
    default=None,
    help="Skip bad records and report them, or stop at the first one.  [default: stop, but skip "
    "files of a folder that cannot be read]",
)
data_option = option(
    "--data",
    type=PATH,
    metavar="DIR",
    help="Folder that data paths are relative to.  [default: $BIRCHBARK_DATA, or "
    f"{defaults.DATA_ROOT} if it exists]",
)
threads_option = option(
    "--threads",
    type=click.IntRange(1),
    help="CPU threads for BERT.  [default: OMP_NUM_THREADS, or else all cores]",
)
scale_option = option(
    "--scale",
    type=click.Choice(["raw", "max", "minmax"]),
    default=defaults.FIRST_STAGE_SCALE,
    help="How the scores of each run are scaled: divided by the query's highest (max), mapped to 0 "
    "to 1, and to 0 if all are equal (minmax), or not at all (raw). Scores below 0 need minmax.",
)
query_tokens_option = option(
    "--query-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="Have models read only the first N tokens of a query, and say how many were cut.  "
    "[default: all; a query that is too long is refused]",
)

query_file_options = option_group(
    option(
        "--queries",
        required=True,
        type=PATH,
        help="Queries as TSV (id TAB text), JSONL, TREC topics or TREC CAR's hierarchical.qrels.",
    ),
    option(
        "--topic-field",
        "topic_fields",
        multiple=True,
        default=defaults.TOPIC_FIELDS,
        metavar="FIELD",
        help="Field of TREC topics to search with; repeat to join several.",
    ),
)
query_options = option_group(query_file_options, encoding_option("the query file"))

_first_stage_options = option_group(
    option(
        "--first-stage",
        "first_stage_model",
        type=click.Choice(["bm25", "tfidf", "dense", "rrf"]),
        default=defaults.FIRST_STAGE,
        help="Retrieval model. tfidf: cosine of tf-idf vectors. dense: cosine of stored vectors. "
        "rrf: reciprocal rank fusion of bm25 and dense.",
    ),
    option(
        "--match",
        metavar="MODE",
        help="Which documents are candidates: those with any query term (or), with every term "
        "(and), with at least N terms (a number), or all documents (all). nearest:K: the K nearest "
        "documents by stored vectors, or as many as requested (nearest). nearest+or, "
        "nearest:K+and, …: both; the nearest take up to half of the places, and up to K (with rrf, "
        "any number up to K).  [default: or; nearest with dense; nearest+or with rrf, and for "
        "re-ranking if the vectors of --embedding are stored]",
    ),
    option(
        "--vector-set",
        metavar="NAME",
        help="Set of stored vectors for --match nearest, --first-stage dense and rrf; `birchbark "
        "index stats` lists them.  [default: the first one]",
    ),
    option(
        "--field",
        "fields",
        multiple=True,
        metavar="NAME[=WEIGHT]",
        help="Indexed field to search, and its weight; repeat to sum over several.  "
        f"[default: {defaults.INDEXED_FIELD}=1; of a folder also {defaults.FILE_NAMES_FIELD}="
        f"{defaults.FILE_NAMES_WEIGHT:g}]",
    ),
    option(
        "--filter",
        "filters",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Search only documents with this value of a field. 'path=docs/*': all values that "
        "begin with docs/. 'type=pdf|html': any of several. 'modified=2024-03..2024-05': a range. "
        "'type=!code': any value but this one. Folders have the fields path, folder, type, "
        "language and modified; other fields need --keyword when they are indexed. Repeat for "
        "several fields.",
    ),
    option("--rm3", is_flag=True, help="Expand queries with RM3."),
    title="First stage",
)
device_option = option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default=defaults.DEVICE,
    help="Device for BERT. cuda needs torch (pip install 'birchbark[train]').",
)
_model_options = option_group(
    option(
        "--model",
        default=defaults.MODEL,
        help="Model directory, a name listed by `birchbark model list`, or the id of a model "
        "downloaded with `birchbark model fetch`.",
    ),
    option(
        "--embedding",
        metavar="MODEL",
        help="Embedding model that scores all candidates first and chooses what --model reads; "
        "none to leave it out. Fast if the index stores its vectors.  "
        f"[default: {defaults.EMBEDDING}; none if --model is an embedding model or scores whole "
        "documents]",
    ),
    option(
        "--embedding-weight",
        type=float,
        metavar="E",
        help="Share of the embedding score in the evidence.  "
        f"[default: what --model states, such as .7 for {defaults.SMALL_MODEL}, or else "
        f"{defaults.EMBEDDING_WEIGHT:g}]",
    ),
    option(
        "--pooling",
        metavar="METHOD[:LAYER]",
        help="Ignore the model's head and score with token vectors of a layer (0 is the input "
        "embeddings). cls, mean, max: cosine of pooled vectors. tokens: late interaction, the "
        "cosine of each query token with its most similar text token.  [default: the model's own "
        "head; last layer]",
    ),
    option(
        "--precision",
        type=click.Choice(["auto", "fp32", "int8", "bf16", "fp16"]),
        default=defaults.PRECISION,
        help="Arithmetic of BERT. int8 (on the CPU), bf16 and fp16 (on a GPU) are faster, with "
        "scores close to fp32 (see birchbark model check). With int8 and --read-segments all, fp32 "
        f"rescores the top segments of the {defaults.RESCORE_DEPTH} best documents. auto: in "
        "search, serve and mcp, int8 for the bundled models if the processor has VNNI "
        "instructions; otherwise fp32.",
    ),
    device_option,
    threads_option,
    option(
        "--scores",
        type=PATH,
        metavar="STORE",
        help="Folder in which BERT's scores are stored, so that none is computed twice.",
    ),
    option(
        "--duo",
        metavar="MODEL",
        help="Model that re-ranks the best documents once more by pairwise comparison (duoBERT).",
    ),
    title="Models",
)
_evidence_options = option_group(
    option(
        "--depth",
        default=defaults.RERANKING_DEPTH,
        help="Number of candidates to re-rank per query.",
    ),
    option(
        "--segments",
        metavar="METHOD",
        help="How documents are split: passages:SIZE (whole sentences, up to a number of words), "
        "sentences, paragraphs, sections, windows:SIZE/OVERLAP (words), whole, title or text.  "
        f"[default: {defaults.SEGMENTS}; "
        f"{defaults.DOCUMENT_SCORER_SEGMENTS} for models that score whole documents (PARADE)]",
    ),
    option(
        "--aggregate",
        metavar="METHOD",
        help="How segment scores are aggregated: first, max, sum, mean, top:W1,W2,… or "
        f"topmean:W1,W2,… (weighted sum or mean of the best segments).  [default: "
        f"{defaults.AGGREGATION}]",
    ),
    option(
        "--first-stage-weight",
        default=defaults.FIRST_STAGE_WEIGHT,
        metavar="A",
        help="Interpolation weight: score = A · first stage + (1 - A) · evidence.",
    ),
    title="Evidence",
)
_reading_options = option_group(
    option(
        "--read-segments",
        metavar="N",
        help="Number of segments of each document that --model reads, chosen by the embedding; or "
        f"all.  [default: {defaults.READ_SEGMENTS}, or more if --aggregate top:… has more weights; "
        "all for models and aggregations that need all]",
    ),
    option(
        "--read-documents",
        metavar="N",
        default=defaults.READ_DOCUMENTS,
        help="Number of candidates that --model reads, the best ones by first stage and embedding; "
        "or all. The others keep their order below.",
    ),
    option(
        "--read-pairs",
        metavar="N",
        help="Number of segments that --model reads in total, those of the best candidates; or "
        f"all.  [default: {defaults.READ_PAIRS}; all with --read-segments all]",
    ),
    option(
        "--embed-segments",
        metavar="N",
        default=defaults.EMBED_SEGMENTS,
        help="Number of segments that the embedding reads of a document without stored vectors; or "
        "all.",
    ),
    option(
        "--embed-documents",
        metavar="N",
        default=defaults.EMBED_DOCUMENTS,
        help="Number of candidates that the embedding reads if the index has only static vectors "
        "of them, or all; the others are judged by these.",
    ),
    query_tokens_option,
    title="How much is read",
)
ranker_file_option = option(
    "--ranker",
    "ranker_file",
    type=PATH,
    callback=lambda _context, _parameter, path: path and Section.read(path),
    metavar="FILE",
    help="TOML file with a table [first_stage], and a table [[stage]] for each re-ranking; "
    "`birchbark ranker show` prints all keys. Options apply where the file leaves a key out.",
)
first_stage_options = option_group(_first_stage_options, ranker_file_option)
ranker_options = option_group(_model_options, _evidence_options, _reading_options)


def given_options() -> list[str]:
    """Return the names of the parameters given on the command line."""
    context = click.get_current_context()
    source = click.core.ParameterSource.COMMANDLINE
    return [name for name in context.params if context.get_parameter_source(name) is source]


def check_given_options() -> None:
    """Raise InputError if an option given on the command line has no effect or excludes another."""
    check_options(given_options(), click.get_current_context().params, spell_option)


def spell_option(name: str) -> str:
    """Return the parameter `name` as it is written on the command line."""
    for parameter in click.get_current_context().command.params:
        if parameter.name == name:
            return max(parameter.opts, key=len)
    return "--" + name.replace("_", "-")


def time_option(*names: str, **settings: Any) -> Decorator:
    """Return an option that takes a time such as 500ms, and passes it on in seconds."""
    return option(
        *names, callback=lambda _, __, text: parse_seconds(text), metavar="TIME", **settings
    )


def parse_seconds(text: str | None) -> float | None:
    """Parse a time such as 500ms, 2s or 1.5 into seconds; None stays None."""
    if text is None:
        return None
    time = re.fullmatch(r"(\d+(?:\.\d*)?)\s*(ms|s|)", text)
    if time is None:
        raise InputError("not a time", found=text, wanted="500ms, or 2s")
    return float(time[1]) / (1000 if time[2] == "ms" else 1)
