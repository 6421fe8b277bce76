"""`birchbark cluster`: how does a ray cluster do a command's work in shards?"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark import defaults
from birchbark.cli.console import notify, progress
from birchbark.cli.index_of_folder import index_path
from birchbark.cli.options import option
from birchbark.errors import InputError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.cluster.on_ray import Resources
    from birchbark.cluster.shard import Shard
    from birchbark.cluster.shard_record import ShardRecord

SHARDED = ("retrieve", "rerank")
STUDY = ("study", "run")
SERVE = "serve"


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: birchbark cluster --shards 16 rerank articles.index --run bm25.run "
    "--queries queries.tsv --output bert.run",
    short_help="Do a command's work in shards, on a ray cluster.",
)
@option(
    "--shards",
    type=click.IntRange(1),
    metavar="N",
    help="Number of parts of the queries, or of a study's trainings. Take several times as many as "
    "can be done at the same time, so that no node waits long for the last ones.  [required, "
    "except for a study, whose trainings are done one by one by default]",
)
@option(
    "--address",
    help="The cluster's address.  [default: RAY_ADDRESS, a cluster running on this machine, or "
    "else this machine alone]",
)
@option(
    "--cpus",
    default=defaults.SHARD_CPUS,
    type=click.IntRange(1),
    help="Number of CPU cores for a shard, which has as many threads.",
)
@option(
    "--gpus",
    default=defaults.SHARD_GPUS,
    type=click.FloatRange(0),
    help="Number of GPUs for a shard, a whole number or below 1; with .5, two shards share one.",
)
@option(
    "--scorers",
    type=click.IntRange(1),
    metavar="N",
    help="For serve: number of processes that run BERT.  [default: none; the serving process "
    "runs BERT itself]",
)
@option(
    "--unlike-processors",
    is_flag=True,
    help="Also use nodes whose processors have other vector instructions. Scores can differ in the "
    "last bits from those of a single machine; otherwise this is an error.",
)
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND …")
def command(
    shards: int | None,
    address: str | None,
    cpus: int,
    gpus: float,
    scorers: int | None,
    unlike_processors: bool,
    arguments: tuple[str, ...],
) -> None:
    """Run COMMAND on a ray cluster: `retrieve`, `rerank`, `study run` or `serve`.

    It writes the files that COMMAND alone would write, on the CPU byte for byte. All nodes must see
    the working directory and all files at the same paths. If a node is lost, other nodes run
    its shards. If the command ends early, the same command runs the remaining shards; with
    --scores, they reuse the stored scores.

    The models of a study are trained on the cluster; then this machine ranks and writes the report.

    With `serve`, the cluster ranks the shards of an index, one process for each, and this machine
    reads the candidates. If a node is lost, answers lack the documents of its shards, and say so,
    until ray has started them elsewhere.
    """
    from birchbark.cluster.merge_shards import check_alike, merge_shards
    from birchbark.cluster.on_ray import Resources, run_on_ray
    from birchbark.cluster.shard_record import check_division, delete_records, read_record

    resources = Resources(cpus, gpus)
    if arguments[0] == SERVE:
        if shards or gpus:
            raise InputError(
                "--shards and --gpus are not for serve",
                remedy="the index determines its shards; --scorers run on CPUs",
            )
        _serve(arguments, resources, scorers or 0, address, unlike_processors=unlike_processors)
        return
    if scorers is not None:
        raise InputError("--scorers is for serve", found=" ".join(arguments[:2]))
    if arguments[:2] == STUDY:
        _run_study(arguments, shards, resources, address, unlike_processors=unlike_processors)
        return
    output = _output_of(arguments)
    if shards is None:
        raise InputError("no number of shards", wanted="--shards N")
    check_division(output, shards)
    work = ShardCommand(arguments, str(Path.cwd()), cpus)
    outcomes = run_on_ray(work, shards, resources, address)
    with progress("shards", shards) as advance, closing(outcomes):
        first: ShardRecord | None = None
        for shard, messages in outcomes:
            for line in messages.splitlines():
                notify(f"[{shard}] {line}")
            record = read_record(shard, output)
            first = first or record
            check_alike(first, record, output, unlike_processors=unlike_processors)
            advance(1)
    written, _ = merge_shards(output, unlike_processors=unlike_processors)
    delete_records(output)
    notify(f"wrote {', '.join(map(str, written))} from {plural(shards, 'shard')}")


def _output_of(arguments: Sequence[str]) -> Path:
    """Return the file that a command writes; raises what the command raises for wrong arguments."""
    from birchbark.cli import group

    name, *rest = arguments
    root = click.get_current_context().find_root()
    called = group.get_command(root, name) if name in SHARDED else None
    if called is None:
        wanted = f"{', '.join(SHARDED)}, {' '.join(STUDY)} or {SERVE}"
        raise InputError("no command with shards", wanted=wanted, found=name)
    parsed = called.make_context(name, list(rest), parent=root)  # refuses wrong arguments
    if parsed.params["shard_text"] is not None:
        raise InputError("--shard cannot be given: `birchbark cluster` does all shards")
    output: Path = parsed.params["output"]
    return output


def _serve(
    arguments: Sequence[str],
    resources: Resources,
    scorers: int,
    address: str | None,
    *,
    unlike_processors: bool,
) -> None:
    """Serve an index whose shards are ranked by the cluster."""
    from birchbark.cli import group
    from birchbark.cluster.serving import serving_processes

    root = click.get_current_context().find_root()
    called = group.get_command(root, SERVE)
    assert called is not None
    parsed = called.make_context(SERVE, list(arguments[1:]), parent=root)
    directory = index_path(parsed.params["index"])  # which is not built here
    if scorers and parsed.params["device"] != defaults.DEVICE:
        raise InputError("--scorers run on CPUs", remedy="leave out --device or --scorers")
    with (
        serving_processes(
            directory, resources, scorers, address, unlike_processors=unlike_processors
        ) as parsed.obj,
        parsed,
    ):
        called.invoke(parsed)


def _run_study(
    arguments: Sequence[str],
    shards: int | None,
    resources: Resources,
    address: str | None,
    *,
    unlike_processors: bool,
) -> None:
    """Train the models of a study on the cluster, and then run it here."""
    from birchbark.cli import group
    from birchbark.cluster.on_ray import run_on_ray
    from birchbark.experiments.recipe_file import read_recipe
    from birchbark.study.training_chains import independent

    root = click.get_current_context().find_root()
    studies = group.get_command(root, STUDY[0])
    assert isinstance(studies, click.Group)
    called = studies.commands[STUDY[1]]
    parsed = called.make_context(" ".join(STUDY), list(arguments[2:]), parent=root)
    recipe, cache = parsed.params["recipe"], parsed.params["cache"]
    if recipe.is_dir():
        raise InputError("a folder of recipes", wanted="one recipe", found=str(recipe))
    if cache is None:
        raise InputError("no folder for trained models", wanted="--cache DIR, which all nodes see")
    chains = read_recipe(recipe, parsed.params["larger"]).experiment.chains
    models = [tuple(of_group) for of_group in independent(chains)]
    if not models:
        raise InputError(
            "this study trains no models",
            found=str(recipe),
            remedy="run it without birchbark cluster: birchbark study run",
        )
    count = shards or len(models)
    options = {name: parsed.params[name] for name in ("recipe", "larger", "data", "device")}
    work = StudyTraining(tuple(models), cache, options, str(Path.cwd()), resources.cpus)
    processors: set[str] = set()
    with (
        closing(run_on_ray(work, count, resources, address)) as outcomes,
        progress("trainings", count) as advance,
    ):
        for shard, (messages, processor) in outcomes:
            for line in messages:
                notify(f"[{shard}] {line}")
            processors.add(processor)
            if len(processors) > 1 and not unlike_processors:
                raise InputError(
                    "models were trained on unlike processors",
                    found=" and ".join(sorted(processors)),
                    remedy="nodes of one kind, or --unlike-processors",
                )
            advance(1)
    with parsed:
        called.invoke(parsed)


def _enter(folder: str, threads: int) -> None:
    """Prepare this process of a node for work in the folder, with so many threads."""
    from birchbark.cli import allow_open_files

    allow_open_files()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        os.chdir(folder)
    except OSError as error:
        raise InputError(
            "the working directory is not on this node",
            where=folder,
            found=f"{error.strerror} on {os.uname().nodename}",
            remedy="use a folder that all nodes share",
        ) from None


@dataclass(frozen=True)
class StudyTraining:
    """Trains some of a study's models on a node.

    Attributes:
        models: Their names, in groups that can be trained at the same time.
        cache: The folder for trained models.
        options: recipe, larger, data and device, as given to the command.
        folder: The working directory.
        threads: Number of threads.
    """

    models: tuple[tuple[str, ...], ...]
    cache: Path
    options: Mapping[str, Any]
    folder: str
    threads: int

    def __call__(self, shard: Shard) -> tuple[list[str], str]:
        """Train the shard's models. Returns what was said, and the kind of processor."""
        _enter(self.folder, self.threads)
        from birchbark.collection.data_files import find_data_root
        from birchbark.experiments.recipe_file import read_recipe
        from birchbark.score.processor import processor
        from birchbark.study.run import train_models

        messages: list[str] = []
        train_models(
            read_recipe(self.options["recipe"], self.options["larger"]),
            find_data_root(self.options["data"]),
            self.cache,
            [name for of_group in shard.of(self.models) for name in of_group],
            device=self.options["device"],
            progress=messages.append,
        )
        return messages, processor()


@dataclass(frozen=True)
class ShardCommand:
    """Does one shard of a command on a node.

    Attributes:
        arguments: The command's.
        folder: The working directory.
        threads: Number of threads, unless the command says otherwise.
    """

    arguments: tuple[str, ...]
    folder: str
    threads: int

    def __call__(self, shard: Shard) -> str:
        """Do the shard, and return its messages."""
        from birchbark.cli import group

        _enter(self.folder, self.threads)
        messages = StringIO()
        with redirect_stderr(messages), redirect_stdout(messages), warnings.catch_warnings():
            warnings.showwarning = lambda text, *_, **__: notify(f"note: {text}")
            group.main([*self.arguments, "--shard", str(shard)], standalone_mode=False)
        return messages.getvalue()
