"""`birchbark study`: which commands do studies need?"""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {  # name → module and function
    "run": ("run_recipe", "run"),
    "list": ("list_recipes", "list_recipes"),
    "plan": ("plan_recipe", "plan"),
    "refresh": ("refresh_results", "refresh"),
    "title-pairs": ("title_pairs", "title_pairs"),
    "reformulate": ("reformulate", "reformulate"),
    "attention": ("attention", "draw_attention"),
}


class _LazyGroup(click.Group):
    """A group that imports a command's module only when it is used, so that --help is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, function = COMMANDS[name]
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), function)
        return command


@click.group(
    cls=_LazyGroup,
    epilog="Example: birchbark study run uva-analyzers --output uva",
    short_help="Reproduce tables of papers.",
)
def command() -> None:
    """Run a study from its recipe, list the recipes, or prepare what some of them need."""
