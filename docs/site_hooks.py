"""How do the command line's help and training/README.md get into the site? As an MkDocs hook.

The pages show the originals, so that they cannot differ from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from birchbark.cli import group

ROOT = Path(__file__).parents[1]
COMMANDS = "<!-- commands -->"
TRAINING = "<!-- training/README.md -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the markers on a page."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, "\n".join(sections()))
    if TRAINING in markdown:
        markdown = markdown.replace(TRAINING, (ROOT / "training" / "README.md").read_text())
    return markdown


def sections() -> Iterator[str]:
    """Yield a heading and the help of each command, groups before their commands."""
    for context in contexts(group, "birchbark", None):
        level = "#" * (2 if context.parent is None or context.parent.parent is None else 3)
        yield f"{level} {context.command_path}\n\n```text\n{context.get_help()}\n```\n"


def contexts(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[click.Context]:
    """Yield the context of a command, then those of all commands below it."""
    settings = {**command.context_settings, "terminal_width": 80}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            inner = command.get_command(context, child)
            if inner is not None:
                yield from contexts(inner, child, context)
