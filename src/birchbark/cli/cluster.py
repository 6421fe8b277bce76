"""`birchbark cluster`: how does a ray cluster do a command's work in shards?

A command of a class with a method `on_cluster`, such as that of a study, says so itself.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.cli.console import notify, progress
from birchbark.cli.index_of_folder import index_path
from birchbark.cli.options import Range, option
from birchbark.cli.shards import join_shards
from birchbark.errors import InputError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.cluster.on_ray import Resources
    from birchbark.cluster.shard import Shard
    from birchbark.cluster.shard_record import ShardRecord

WITH_SHARDS = "retrieve, rerank, study run or serve"
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
    type=Range(0),
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

    It writes the runs and reports that COMMAND alone would write, on the CPU byte for byte, but no
    metadata of runs. All nodes must see the working directory and all files at the same paths. If a
    node is lost, other nodes run its shards. If the command ends early, the same command runs the
    remaining shards; with --scores, they reuse the stored scores.

    The models of a study are trained on the cluster; then this machine ranks and writes the report.

    With `serve`, the cluster ranks the shards of an index, one process for each, and this machine
    reads the candidates. If a node is lost, answers lack the documents of its shards, and say so,
    until ray has started them elsewhere.
    """
    from birchbark.cluster.merge_shards import check_alike
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
    parsed = _parse(arguments)
    if on_cluster := getattr(parsed.command, "on_cluster", None):
        on_cluster(parsed, shards, resources, address, unlike_processors=unlike_processors)
        return
    output: Path = parsed.params["output"]
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
    written, _ = join_shards(output, unlike_processors=unlike_processors)
    delete_records(output)
    notify(f"wrote {', '.join(map(str, written))} from {plural(shards, 'shard')}")


def _parse(arguments: Sequence[str]) -> click.Context:
    """Return a command with its arguments; raises what it raises for wrong ones."""
    from birchbark.cli import group

    root = click.get_current_context().find_root()
    called: click.Command | None = group
    names, rest = list[str](), list(arguments)
    while isinstance(called, click.Group) and rest:
        names.append(rest.pop(0))
        called = called.get_command(root, names[-1])
    parsed = called and called.make_context(" ".join(names), rest, parent=root)
    if parsed and parsed.params.get("shard_text") is not None:
        raise InputError("--shard cannot be given: `birchbark cluster` does all shards")
    divisible = parsed and ("shard_text" in parsed.params or hasattr(called, "on_cluster"))
    if not parsed or not divisible:
        raise InputError("no command with shards", wanted=WITH_SHARDS, found=" ".join(names))
    return parsed


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
    if not parsed.params["index"]:
        raise InputError("no index", wanted="one whose shards the cluster ranks")
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


def prepare_node(folder: str, threads: int) -> None:
    """Prepare this process of a node for work in the folder, with so many threads."""
    from birchbark.systems import allow_open_files

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

        prepare_node(self.folder, self.threads)
        messages = StringIO()
        with redirect_stderr(messages), redirect_stdout(messages), warnings.catch_warnings():
            warnings.showwarning = lambda text, *_, **__: notify(f"note: {text}")
            group.main([*self.arguments, "--shard", str(shard)], standalone_mode=False)
        return messages.getvalue()
