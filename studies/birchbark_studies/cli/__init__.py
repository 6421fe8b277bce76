"""`birchbark study`: which commands do studies need?"""

from __future__ import annotations

import click

from birchbark.cli.lazy_group import LazyGroup

COMMANDS = {  # name → module:function
    "run": "run_recipe:run",
    "list": "list_recipes:list_recipes",
    "plan": "plan_recipe:plan",
    "refresh": "refresh_results:refresh",
    "title-pairs": "title_pairs:title_pairs",
    "reformulate": "reformulate:reformulate",
    "attention": "attention:draw_attention",
}


@click.group(
    cls=LazyGroup,
    places={name: f"{__name__}.{place}" for name, place in COMMANDS.items()},
    epilog="Example: birchbark study run uva-analyzers --output uva",
    short_help="Reproduce tables of papers.",
)
def command() -> None:
    """Run a study from its recipe, list the recipes, or prepare what some of them need."""
