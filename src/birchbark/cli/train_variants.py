"""How do `distill`, `adapt` and `pretrain` reuse `birchbark train`?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark.cli.train import command as train
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.train.config import TrainingConfig

ConfigError = Callable[["TrainingConfig"], InputError | None]


def training_command(
    name: str, config_error: ConfigError, text: str, *, example: str, short_help: str
) -> click.Command:
    """Return a command like `birchbark train` that accepts only some configurations.

    config_error: returns the error for a configuration that the command does not accept, otherwise
    None; it is called before any work. text: the command's help. example: a command line.
    """

    def callback(config: Path, **options: Any) -> None:
        from birchbark.train.setting_grid import read_variants

        for variant in read_variants(config):
            if error := config_error(variant.training):
                raise error.at(str(config))
        click.get_current_context().forward(train)

    return click.Command(
        name,
        callback=callback,
        params=train.params,
        help=text,
        epilog=f"Example: {example}",
        short_help=short_help,
    )
