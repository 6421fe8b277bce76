"""Which part of an error's advice can be followed with the command that was run?

The library's errors name options, which not every command has that can end with the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import click

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
_CLAUSE = re.compile(r"(?:;|,) (?:or )?")


def applicable(remedy: str, known: Iterable[str]) -> str:
    """Return the clauses of a remedy before the first with an option that is not `known`.

    Clauses end at a semicolon or comma. A clause that names another command is kept.
    """
    end = 0
    for clause in [*_CLAUSE.finditer(remedy), None]:
        stop = clause.start() if clause else len(remedy)
        text = remedy[end:stop]
        options = set() if re.search(r"birchbark|pip ", text) else set(_OPTION.findall(text))
        if not options <= set(known):
            return remedy[:end].rstrip(";, ").removesuffix(" or").rstrip(";, ")
        end = clause.end() if clause else stop
    return remedy


def options_of(group: click.Group, arguments: Sequence[str]) -> set[str]:
    """Return the options of the command that `arguments` name, and of the groups it is in.

    If they name only a group, these are the options of all of its commands.
    """
    command: click.Command = group
    commands = [command]
    context = click.Context(group)
    for argument in arguments:
        if isinstance(command, click.Group) and argument in command.list_commands(context):
            command = command.get_command(context, argument) or command
            commands.append(command)
    if isinstance(command, click.Group):
        names = command.list_commands(context)
        commands += filter(None, (command.get_command(context, name) for name in names))
    return {
        name
        for command in commands
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
