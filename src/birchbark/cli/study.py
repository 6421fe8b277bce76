"""`birchbark study`: the command of the package birchbark-studies, where it is installed."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, NoReturn

import click

from birchbark.errors import MissingPackageError


class _Missing(click.Command):
    """The command where the package is not installed: it says how to install it."""

    def make_context(self, *_: Any, **__: Any) -> NoReturn:
        """Raise MissingPackageError, whatever the arguments."""
        raise MissingPackageError(
            "studies are in a package of their own",
            remedy="pip install birchbark-studies, or pip install ./studies in Birchbark's folder",
        )


_found = [*entry_points(group="birchbark.commands", name="study")]
command: click.Command = (
    _found[0].load() if _found else _Missing("study", short_help="Reproduce tables of papers.")
)
