"""`birchbark attention`: what a model looks at when it reads a query and a text."""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.options import DEFAULT_MODEL, FILE, OR_REPLACE
from birchbark.cli.talk import say


@click.command(
    epilog='Example: birchbark attention "art crime" "Robbers took two paintings." --output a.html',
    short_help="A page of what a model looks at in a text.",
)
@click.argument("query")
@click.argument("text")
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="A cross-encoder.")
@click.option("--output", required=True, type=FILE, help="HTML file; needs no other file.")
@click.option("--replace", is_flag=True, help="Replace the file that is there.")
def command(query: str, text: str, model: str, output: Path, replace: bool) -> None:
    """Draw the attention of MODEL, by layer and head, while it scores TEXT for QUERY."""
    from birchbark.artifact import new_file, refuse_existing
    from birchbark.score.attention import attention
    from birchbark.show.attention import attention_page

    refuse_existing(output, replace=replace, remedy=OR_REPLACE)
    found = attention(model, query, text)
    page = attention_page(found, model, query, text)
    with new_file(output) as out:
        out.write(page)
    say(f"probability of relevance {found.score:.3f}; page: {output}")
