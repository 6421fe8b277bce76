"""`birchbark cluster`: how does a ray cluster do a command's work in shards?"""

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
from birchbark.cli.options import option
from birchbark.errors import InputError
from birchbark.show.many import many

if TYPE_CHECKING:
    from birchbark.cluster.shard import Shard
    from birchbark.cluster.shard_record import ShardRecord

SHARDED = ("retrieve", "rerank")


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: birchbark cluster --shards 16 rerank articles.index --run bm25.run "
    "--queries queries.tsv --output bert.run",
    short_help="Do a command's work in shards, on a ray cluster.",
)
@option(
    "--shards",
    required=True,
    type=click.IntRange(1),
    metavar="N",
    help="Number of parts of the queries. Take several times as many as can be done at the same "
    "time, so that no node waits long for the last ones.",
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
    "--unlike-processors",
    is_flag=True,
    help="Also use nodes whose processors have other vector instructions. Scores can differ in the "
    "last bits from those of a single machine; otherwise this is an error.",
)
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND …")
def command(
    shards: int,
    address: str | None,
    cpus: int,
    gpus: float,
    unlike_processors: bool,
    arguments: tuple[str, ...],
) -> None:
    """Do COMMAND, which is `retrieve` or `rerank` with its arguments, on a ray cluster.

    It writes the files that COMMAND alone would write, on the CPU byte for byte. All nodes must see
    the working directory and all files at the same paths. Shards of a node that is lost are done by
    others. If the command ends early, the same command does the shards that are left; with
    --scores, these go on with the scores that were stored.
    """
    from birchbark.cluster.merge_shards import check_alike, merge_shards
    from birchbark.cluster.on_ray import Resources, run_on_ray
    from birchbark.cluster.shard_record import check_division, delete_records, read_record

    output = _output_of(arguments)
    check_division(output, shards)
    work = ShardCommand(arguments, str(Path.cwd()), cpus)
    outcomes = run_on_ray(work, shards, Resources(cpus, gpus), address)
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
    notify(f"wrote {', '.join(map(str, written))} from {many(shards, 'shard')}")


def _output_of(arguments: Sequence[str]) -> Path:
    """Return the file that a command writes; raises what the command raises for wrong arguments."""
    from birchbark.cli import group

    name, *rest = arguments
    root = click.get_current_context().find_root()
    called = group.get_command(root, name) if name in SHARDED else None
    if called is None:
        raise InputError("no command with shards", wanted=" or ".join(SHARDED), found=name)
    parsed = called.make_context(name, list(rest), parent=root)  # refuses wrong arguments
    if parsed.params["shard_text"] is not None:
        raise InputError("--shard cannot be given: `birchbark cluster` does all shards")
    output: Path = parsed.params["output"]
    return output


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
        from birchbark.cli import allow_open_files, group

        allow_open_files()
        os.environ["OMP_NUM_THREADS"] = str(self.threads)
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise InputError(
                "the working directory is not on this node",
                where=self.folder,
                found=f"{error.strerror} on {os.uname().nodename}",
                remedy="use a folder that all nodes share",
            ) from None
        messages = StringIO()
        with redirect_stderr(messages), redirect_stdout(messages), warnings.catch_warnings():
            warnings.showwarning = lambda text, *_, **__: notify(f"note: {text}")
            group.main([*self.arguments, "--shard", str(shard)], standalone_mode=False)
        return messages.getvalue()
