"""`birchbark index verify` and `stats`: is an index sound, and what is in it?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.options import INDEX
from birchbark.cli.talk import progress, say
from birchbark.errors import ArtifactError


@click.command(epilog="Example: birchbark index verify articles.index")
@INDEX
def verify(index: Path) -> None:
    """Check that every file of INDEX is as it was written; name what is damaged."""
    from birchbark.index.layout import Manifest
    from birchbark.index.verify import damage

    with progress("checking", len(Manifest.read(index).parts)) as advance:
        found = damage(index, advance)
    for line in found:
        click.echo(line)
    if found:
        raise ArtifactError("damaged", where=str(index), remedy="build the index again")
    say(f"{index}: all checksums hold")


@click.command(epilog="Example: birchbark index stats articles.index")
@INDEX
def stats(index: Path) -> None:
    """Print sizes, fields, terms and lengths of INDEX."""
    from birchbark.index.describe import describe
    from birchbark.index.reader import Index

    for name, value in describe(Index(index)).items():
        shown = f"{value:,}" if isinstance(value, int) else value
        click.echo(f"{name}\t{shown}")
