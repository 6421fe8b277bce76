"""`birchbark study attention`: which tokens does a model attend to in a query and a text?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark import defaults
from birchbark.cli.console import notify
from birchbark.cli.options import option, replace_option


@click.command(
    "attention",
    epilog='Example: birchbark study attention "art crime" "Robbers took two paintings." '
    "--output a.html",
    short_help="Draw a model's attention as an HTML page.",
)
@click.argument("query")
@click.argument("text")
@option("--model", default=defaults.MODEL, help="A cross-encoder.")
@option(
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Self-contained HTML file to write.",
)
@replace_option("file")
def draw_attention(query: str, text: str, model: str, output: Path, replace: bool) -> None:
    """Draw a model's attention in each layer and head when it scores TEXT for QUERY."""
    from birchbark.artifact import new_file, refuse_existing
    from birchbark.score.attention import attention
    from birchbark.show.attention_page import attention_page

    refuse_existing(output, replace=replace)
    weights = attention(model, query, text)
    page = attention_page(weights, model, query, text)
    with new_file(output) as out:
        out.write(page)
    notify(f"probability of relevance {weights.score:.3f}; page: {output}")
