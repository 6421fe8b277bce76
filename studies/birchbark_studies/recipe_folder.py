"""Where are recipes, and where are their results?"""

from __future__ import annotations

from pathlib import Path

from birchbark import InputError

RECIPES = Path(__file__).parent / "recipes"  # those of this package


def recipe_path(name: str) -> Path:
    """Return the recipe, or the folder of recipes, that a path or the name of a recipe means.

    A path comes first; a name such as birch-time is that of a recipe of this package. Raises
    InputError if there is neither.
    """
    path = Path(name)
    if path.exists():
        return path
    packaged = RECIPES / f"{name}.toml"
    if path.name == name and packaged.is_file():
        return packaged
    raise InputError(
        "no such recipe",
        wanted="a TOML file, a folder of them, or a name that `birchbark study list` prints",
        found=name,
    )


def results_folder(recipes: Path) -> Path:
    """Return the folder of results of a folder of recipes: results in it.

    Those of this package's recipes are in the repository, beside the package.
    """
    same = recipes.resolve() == RECIPES.resolve()
    return (RECIPES.parents[1] if same else recipes) / "results"
