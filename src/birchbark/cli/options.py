"""Which options do several commands share?"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

from birchbark import defaults
from birchbark.cli.grouped_help import Decorator, option_group
from birchbark.cli.option_rules import check_options
from birchbark.errors import InputError

PATH = click.Path(path_type=Path)


class Range(click.FloatRange):
    """Numbers between two bounds; nan, which is not, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        return number if number == number else self.fail(f"{value} is not a number", param, ctx)


BAD_RECORD_REMEDY = "correct it, or skip it with --skip-bad"


def option(*names: str, **settings: Any) -> Decorator:
    """Return a click option whose default is shown by --help."""
    return click.option(*names, show_default=True, **settings)


def random_seed_option(purpose: str) -> Decorator:
    """Return the option --seed. purpose: noun for what is random."""
    return option(
        "--seed", type=click.IntRange(0), default=defaults.SEED, help=f"Random seed of {purpose}."
    )


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
query_file_options = option_group(
    option(
        "--queries",
        required=True,
        type=PATH,
        help="Queries as TSV (id TAB text), JSONL, Parquet, topics of TREC, CLEF, NTCIR, FIRE or "
        "INEX, TREC CAR's hierarchical.qrels, or ir_datasets:ID.",
    ),
    option(
        "--topic-field",
        "topic_fields",
        multiple=True,
        default=defaults.TOPIC_FIELDS,
        metavar="FIELD",
        help="Field of topics (default: title), JSON or Parquet to search with; repeat to join "
        "several.",
    ),
)
query_options = option_group(query_file_options, encoding_option("the query file"))

ranker_file_options = option_group(
    option(
        "--ranker",
        "ranker_file",
        type=PATH,
        metavar="FILE",
        help="TOML file that describes the ranker; `birchbark ranker` prints the default one, "
        "with all keys.",
    ),
    option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a key of a [[stage]], such as read_segments=all, or of the [first_stage], such "
        "as first_stage.k1=1.2; repeat for several. Replaces what --ranker says; KEY= restores the "
        "default.",
    ),
)
device_option = option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default=defaults.DEVICE,
    help="Device for BERT. cuda needs torch (pip install 'birchbark[train]').",
)
filter_option = option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Search only documents with this value of a field. 'path=docs/*': all values that "
    "begin with docs/. 'type=pdf|html': any of several. 'modified=2024-03..2024-05': a range. "
    "'type=!code': any value but this one. Folders have the fields path, folder, type, "
    "language and modified, and of e-mails from, to, cc and date; other fields need --keyword "
    "when they are indexed. Repeat for several fields.",
)
ranker_options = option_group(
    option(
        "--model",
        default=defaults.MODEL,
        help="Model directory, a name listed by `birchbark model list`, or the id of a model "
        "downloaded with `birchbark model fetch`; none to rank by the first stage, without BERT.",
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
        "--precision",
        type=click.Choice(["auto", "fp32", "int8", "bf16", "fp16"]),
        default=defaults.PRECISION,
        help="Arithmetic of BERT. int8 (on the CPU), bf16 and fp16 (on a GPU) are faster, with "
        "scores close to fp32 (see birchbark model check). With int8 and read_segments=all, fp32 "
        f"rescores the top segments of the {defaults.RESCORE_DEPTH} best documents. auto: in "
        "search, serve, mcp and bench, int8 for the bundled models if the processor has VNNI "
        "instructions; otherwise fp32.",
    ),
    ranker_file_options,
    device_option,
    threads_option,
    option(
        "--scores",
        type=PATH,
        metavar="STORE",
        help="Folder in which BERT's scores are stored, so that none is computed twice.",
    ),
    title="Ranker",
)


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
    seconds = float(time[1]) / (1000 if time[2] == "ms" else 1)
    if not seconds:
        raise InputError("a time of 0 does not suffice for anything", found=text)
    return seconds
