"""How does a group of commands import only the one that is used, so that --help is fast?"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command is used."""

    def __init__(self, *arguments: Any, places: Mapping[str, str], **attributes: Any) -> None:
        """Make a group. places: name of a command → where it is, `package.module:function`.

        arguments, attributes: those of click.Group.
        """
        super().__init__(*arguments, **attributes)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(self._places)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; None for another name."""
        if name not in self._places:
            return None
        module, _, function = self._places[name].partition(":")
        command: click.Command = getattr(import_module(module), function)
        return command
