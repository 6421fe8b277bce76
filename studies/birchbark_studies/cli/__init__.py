"""`birchbark study`: which commands do studies need?"""

from __future__ import annotations

import click

from birchbark_studies.cli.attention import draw_attention
from birchbark_studies.cli.reformulate import reformulate
from birchbark_studies.cli.studies import list_recipes, refresh, run
from birchbark_studies.cli.title_pairs import title_pairs


@click.group(
    epilog="Example: birchbark study run uva-analyzers --output uva",
    short_help="Reproduce tables of papers.",
)
def command() -> None:
    """Run a study from its recipe, list the recipes, or prepare what some of them need."""


for subcommand in (run, list_recipes, refresh, title_pairs, reformulate, draw_attention):
    command.add_command(subcommand)
