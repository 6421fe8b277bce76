"""`birchbark scores`: what a score store holds, and how it forgets a checkpoint."""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.options import FILE
from birchbark.cli.talk import say


@click.command(
    epilog="Example: birchbark scores bert.scores --prune 3f9a2c0b51d7e846",
    short_help="Show or prune BERT's kept scores.",
)
@click.argument("store", type=FILE)
@click.option(
    "--prune",
    "pruned",
    multiple=True,
    metavar="CHECKPOINT",
    help="Forget the scores of this checkpoint: its name or how its identifier begins; repeat for "
    "several.",
)
def command(store: Path, pruned: tuple[str, ...]) -> None:
    """Print checkpoints, pairs and bytes of STORE, which rerank and search --scores have made.

    A checkpoint stands here once for each version of the arithmetic that it was run by.
    """
    from birchbark.remember.folder import entries, prune

    for checkpoint in pruned:
        gone = prune(store, checkpoint)
        say(f"forgot {gone.pairs:,} pairs of {gone.checkpoint}, {gone.head.name}")
    found = entries(store)
    click.echo("checkpoint\tpairs\tbytes\tname")
    for entry in found:
        click.echo(f"{entry.checkpoint}\t{entry.pairs:,}\t{entry.bytes:,}\t{entry.head.name}")
    say(f"{sum(e.pairs for e in found):,} pairs in {store}")
