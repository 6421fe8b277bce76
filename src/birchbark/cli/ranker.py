"""`birchbark ranker`: what does the file of a ranker say, and is it right?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark import defaults
from birchbark.cli.console import notify
from birchbark.cli.options import PATH


@click.group(
    epilog="Example: birchbark ranker show > ranker.toml",
    short_help="Show or check the file of a ranker.",
)
def command() -> None:
    """Show or check the file that --ranker names for search, serve, mcp, retrieve and rerank."""


@command.command(
    epilog="Examples: birchbark ranker show > ranker.toml; birchbark ranker show ranker.toml",
    short_help="Print all keys and their values.",
)
@click.argument("file", type=PATH, required=False)
def show(file: Path | None) -> None:
    """Print the ranker in FILE, or the default ranker, with all its keys, as a file to edit.

    Keys that are not set have defaults that depend on the model or the index.
    """
    from birchbark.pipeline.ranker_file import as_toml, read_ranker

    click.echo(as_toml(*read_ranker(file)), nl=False)


@command.command(
    epilog="Example: birchbark ranker check ranker.toml",
    short_help="Check a file without ranking.",
)
@click.argument("file", type=PATH)
def check(file: Path) -> None:
    """Check the ranker in FILE: its keys, their values, and whether its models are here and fit."""
    from birchbark.cli.from_options import make_rankers, models_on
    from birchbark.pipeline.ranker_file import read_ranker
    from birchbark.score.lazy_session import when_needed

    _, stages = read_ranker(file)
    make_rankers(models_on(defaults.DEVICE, None, when_needed), stages)
    notify(f"{file}: no fault found")
