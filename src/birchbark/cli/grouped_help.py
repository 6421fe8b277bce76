"""How does --help list a command's options in groups, each under its title?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def option_group(*options: Decorator, title: str = "") -> Decorator:
    """Combine several options into one decorator; --help lists them in this order.

    title: the heading above them; without one, options keep the title of a group that they contain.
    """

    def decorate(command: Command) -> Command:
        before = len(getattr(command, "__click_params__", ()))
        command = functools.reduce(lambda c, each: each(c), reversed(options), command)
        if title:
            for parameter in command.__click_params__[before:]:  # type: ignore[attr-defined]
                parameter.help_title = title
        return command

    return decorate


class GroupedCommand(click.Command):
    """A command whose --help lists its own options first, then those of each group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options into the help text."""
        groups: dict[str, list[tuple[str, str]]] = {"": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "help_title", ""), []).append(record)
        for title, records in groups.items():
            with formatter.section(title or "Options"):
                formatter.write_dl(records)
