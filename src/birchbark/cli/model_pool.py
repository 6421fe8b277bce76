"""`birchbark model pool`: how does one layer of a model become an embedding model?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.console import notify
from birchbark.cli.options import PATH, option, replace_option


@click.command(
    "pool",
    epilog="Example: birchbark model pool covid/model --pooling max:11 --to covid-11-max; "
    "birchbark index attach papers.index --vectors covid-11-max",
    short_help="Turn one layer of a model into an embedding model.",
)
@click.argument("model")
@option(
    "--pooling",
    required=True,
    metavar="METHOD[:LAYER]",
    help="How the token vectors of a layer become a text's vector: cls, mean or max, of the last "
    "layer unless one is given, from 1.",
)
@option("--to", "target", type=PATH, required=True, help="Folder to write.")
@replace_option("model")
def pool_command(model: str, pooling: str, target: Path, replace: bool) -> None:
    """Write MODEL up to a layer, without its head, as an embedding model.

    It can then be used like any other embedding model: for stored vectors, to search and to serve.
    """
    from birchbark.checkpoint.heads import parse_pooling
    from birchbark.checkpoint.locate import locate
    from birchbark.checkpoint.pool import pool_model

    pool_model(locate(model), parse_pooling(pooling), target, overwrite=replace)
    notify(f"{target}: an embedding model of {model}, by {pooling} pooling")
