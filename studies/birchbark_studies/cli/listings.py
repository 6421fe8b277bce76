"""Which recipes does a command of studies list or run?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from birchbark import InputError
from birchbark.cli.console import notify
from birchbark_studies.recipe_folder import RECIPES

if TYPE_CHECKING:
    from birchbark_studies.listing import Listing


def recipe_folder(folder: Path | None) -> Path:
    """Return the folder of recipes, by default this package's; InputError if there is none."""
    folder = folder or RECIPES
    if not folder.is_dir():
        raise InputError("no such folder", where=str(folder), wanted="a folder of recipes")
    return folder


def listings(folder: Path, root: Path | None) -> Iterator[Listing]:
    """Yield the recipes in a folder, by name; those that cannot be read are reported."""
    from birchbark_studies.listing import list_recipe, read_as_measured

    for path in sorted(folder.glob("*.toml")):
        try:
            recipe = read_as_measured(path)
        except InputError as fault:
            notify(f"{path.stem} cannot be read: {fault}")
        else:
            yield list_recipe(recipe, root)
