"""`birchbark distill`: a model that learns from others."""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.train import command as train
from birchbark.errors import InputError


def distill(config: Path, output: Path, data: Path | None, device: str, replace: bool) -> None:
    """Train what CONFIG (a TOML file) asks for, learning from the teachers that it names.

    They teach by their scores (an objective soft, soft-margin or soft-labels: any models, several
    together), by what they compute on the way (a table [match]: one whose tokens are the
    student's), or by both, with labels beside them. The student is the base, or what [model] leaves
    of it. All else is as with birchbark train, which reads the same files.
    """
    from birchbark.train.grid import read_variants

    for variant in read_variants(config):
        if not variant.training.teachers:
            raise InputError(
                "nobody teaches",
                where=str(config),
                wanted='an objective such as { kind = "soft-labels", teacher = "…" }, or [match]',
                remedy="birchbark train learns from labels alone",
            )
    click.get_current_context().forward(train)


command = click.Command(
    "distill",
    callback=distill,
    params=train.params,
    help=distill.__doc__,
    epilog="Example: birchbark distill training/distil.toml --output small",
    short_help="Train a smaller model on what others say.",
)
