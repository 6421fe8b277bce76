"""`birchbark index stats`: what does an index contain, and is it intact?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.console import notify, print_json, progress
from birchbark.cli.options import index_argument, json_option, option
from birchbark.errors import ArtifactError


@click.command(
    epilog="Example: birchbark index stats articles.index", short_help="Print sizes and counts."
)
@index_argument
@option(
    "--verify", is_flag=True, help="First compare every file with its checksum; list damaged ones."
)
@json_option
def stats(index: Path, verify: bool, as_json: bool) -> None:
    """Print the numbers of documents and terms, the sizes and the document lengths of INDEX."""
    from birchbark.index.describe import describe
    from birchbark.index.index import Index

    if verify:
        _verify(index)
    figures = describe(Index(index))
    if as_json:
        print_json(figures)
        return
    for name, value in figures.items():
        shown = f"{value:,}" if isinstance(value, int) else value
        click.echo(f"{name}\t{shown}")


def _verify(index: Path) -> None:
    """List damaged files, and raise ArtifactError if there are any."""
    from birchbark.index.shards import read_manifest
    from birchbark.index.verify import find_damage

    with progress("checking", len(read_manifest(index).parts)) as advance:
        damage = find_damage(index, advance)
    for line in damage:
        click.echo(line)
    if damage:
        raise ArtifactError(
            "damaged",
            where=str(index),
            remedy="build the index again; damaged attachments alone: birchbark index detach, "
            "then attach",
        )
    notify(f"{index}: all checksums match")
