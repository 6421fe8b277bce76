"""`birchbark ranker`: what does the file of a ranker say, and is it right?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark import defaults
from birchbark.cli.options import PATH


@click.command(
    epilog="Examples: birchbark ranker > ranker.toml; birchbark ranker ranker.toml",
    short_help="Check the file of a ranker, and print all its keys.",
)
@click.argument("file", type=PATH, required=False)
def command(file: Path | None) -> None:
    """Check the ranker in FILE, or take the default one, and print it with all its keys.

    Such a file is what --ranker names for search, serve, mcp, retrieve and rerank. Its keys and
    their values are checked, and whether its models are here and fit. Keys that are not set have
    defaults that depend on the model or the index.
    """
    from birchbark.cli.from_options import make_rankers, models_on
    from birchbark.pipeline.ranker_file import as_toml, read_ranker
    from birchbark.score.lazy_session import when_needed

    first_stage, stages = read_ranker(file)
    make_rankers(models_on(defaults.DEVICE, None, when_needed), stages)
    click.echo(as_toml(first_stage, stages), nl=False)
