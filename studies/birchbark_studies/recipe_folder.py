"""Where are recipes, and where are their results?"""

from __future__ import annotations

from pathlib import Path

from birchbark import InputError

RECIPES = Path(__file__).parent / "recipes"  # those of this package


def recipe_path(name: str) -> Path:
    """Return the recipe, or the folder of recipes, that a path or the name of a recipe means.

    The name of a recipe of this package, such as birch-time, comes first, so that a folder of
    results may be called so. Raises InputError if there is neither.
    """
    path, packaged = Path(name), RECIPES / f"{name}.toml"
    if path.name == name and packaged.is_file():
        return packaged
    if path.exists():
        return path
    raise InputError(
        "no such recipe",
        wanted="a TOML file, a folder of them, or a name that `birchbark study list` prints",
        found=name,
    )


def results_folder(recipes: Path) -> Path:
    """Return the folder of results of a folder of recipes: results in it.

    Those of this package's recipes are beside the package, as in Birchbark's repository.
    """
    folder = recipes.resolve()
    packaged = folder.parts[-2:] == RECIPES.parts[-2:]
    return (folder.parents[1] if packaged else recipes) / "results"
