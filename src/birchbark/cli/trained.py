"""What do the verbs share that train what a configuration asks for? Options, and a check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark.cli.train import command as train
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.train.config import Training

Check = Callable[["Training"], InputError | None]


def training_verb(name: str, check: Check, text: str, *, example: str, short: str) -> click.Command:
    """As `birchbark train`, for trainings that `check` finds no fault with, before any work."""

    def verb(config: Path, **choices: Any) -> None:
        from birchbark.train.grid import read_variants

        for variant in read_variants(config):
            if fault := check(variant.training):
                raise fault.at(str(config))
        click.get_current_context().forward(train)

    return click.Command(
        name,
        callback=verb,
        params=train.params,
        help=text,
        epilog=f"Example: {example}",
        short_help=short,
    )
