"""`birchbark merge`: how do the parts that shards have written become one file?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.console import notify
from birchbark.cli.options import PATH, option
from birchbark.cli.shards import join_shards
from birchbark.show.plural import plural


@click.command(
    epilog="Example: birchbark merge bert.run, when all shards of a re-ranking are finished",
    short_help="Join the files of all shards of a command.",
)
@click.argument("output", type=PATH)
@option(
    "--unlike-processors",
    is_flag=True,
    help="Also join shards computed by processors with other vector instructions. Their scores can "
    "differ in the last bits from those of a single machine.",
)
@option("--delete-shards", is_flag=True, help="Delete the shards' files afterwards.")
def command(output: Path, unlike_processors: bool, delete_shards: bool) -> None:
    """Write OUTPUT, and the report and evidence beside it, from the files of all its shards.

    They are what the command would have written without --shard, on the CPU byte for byte; but a
    run has no metadata. Shards that are missing, were made from other inputs or have been changed
    are refused.
    """
    from birchbark.cluster.shard_record import delete_records

    written, count = join_shards(output, unlike_processors=unlike_processors)
    if delete_shards:
        delete_records(output)
    notify(f"joined {plural(count, 'shard')}: {', '.join(map(str, written))}")
