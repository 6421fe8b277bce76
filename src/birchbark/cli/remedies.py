"""What advice fits the command that was run, if it ends with an error?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields

import click


def options_of(group: click.Group, arguments: Sequence[str]) -> set[str]:
    """Return the options of the command that `arguments` name, and of the groups it is in.

    Those of a command that `cluster` runs count as well. If they name only a group, these are the
    options of all of its commands.
    """
    command: click.Command = group
    commands = [command]
    context = click.Context(group)
    for argument in arguments:
        if isinstance(command, click.Group) and argument in command.list_commands(context):
            command = command.get_command(context, argument) or command
            commands.append(command)
            if argument == "cluster":  # another command follows
                command = group
    if isinstance(command, click.Group):
        names = command.list_commands(context)
        commands += filter(None, (command.get_command(context, name) for name in names))
    return {
        name
        for command in commands
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }


def for_unknown_option(error: click.NoSuchOption, arguments: Sequence[str]) -> str:
    """Return a line that names the key that is meant, or the commands that have the option.

    Otherwise it says how a text is given that begins with a dash; it is empty if none of this fits.
    """
    if key := _ranker_key(error):
        return f"{error.option_name} is a key of the ranker: --set {key}=VALUE\n"
    if others := _others_with(error):
        return f"{error.option_name} is an option of {' and '.join(others)}\n"
    given = next((text for text in arguments if text.startswith(error.option_name)), None)
    if error.ctx is None or given is None or error.possibilities:
        return ""
    wanted = [p for p in error.ctx.command.params if isinstance(p, click.Argument)]
    if not wanted or wanted[-1].type is not click.STRING:
        return ""
    before = [error.ctx.command_path, *(p.make_metavar(error.ctx) for p in wanted[:-1])]
    return f"A text that begins with - follows --: {' '.join(before)} -- {shlex.quote(given)}\n"


def _ranker_key(error: click.NoSuchOption) -> str:
    """Return the key for --set that is spelt like the option; empty if there is none."""
    from birchbark.pipeline.first_stage_options import FirstStageOptions
    from birchbark.pipeline.stage_options import NAMES

    if error.ctx is None or not any("--set" in p.opts for p in error.ctx.command.params):
        return ""
    name = error.option_name.removeprefix("--").replace("-", "_")
    if name in NAMES:
        return name
    return f"first_stage.{name}" if name in {f.name for f in fields(FirstStageOptions)} else ""


def _others_with(error: click.NoSuchOption) -> list[str]:
    """Return the commands beside the one that was called, in a group such as `index`."""
    group = error.ctx and error.ctx.parent
    if not group or not group.parent or not isinstance(group.command, click.Group):
        return []
    names = group.command.list_commands(group)
    commands = {name: group.command.get_command(group, name) for name in names}
    return [
        f"{group.command_path} {name}"
        for name, command in commands.items()
        if command and any(error.option_name in p.opts for p in command.params)
    ]
