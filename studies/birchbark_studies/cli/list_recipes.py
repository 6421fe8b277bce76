"""`birchbark study list`: which recipes are there, and what do they need?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.console import notify, print_json
from birchbark.cli.options import PATH, data_option, json_option, option
from birchbark_studies.cli.listings import listings, recipe_folder

if TYPE_CHECKING:
    from birchbark_studies.listing import Listing


@click.command(
    "list",
    epilog="Example: birchbark study list; with files: birchbark study list --files recipes",
    short_help="List recipes and what they need.",
)
@click.argument("folder", type=PATH, required=False)
@data_option
@option("--files", is_flag=True, help="Also list all files and models that each recipe needs.")
@json_option
def list_recipes(folder: Path | None, data: Path | None, files: bool, as_json: bool) -> None:
    """List the recipes in FOLDER (by default, the papers'), and what each of them lacks.

    Results in FOLDER/results/NAME are current if the recipe, its models and its data are those that
    they were measured with and they show its published figures, stale if one of these has changed,
    and unchecked if some are not here.
    """
    from birchbark.collection.data_files import DATA_VARIABLE, find_data_root

    folder = recipe_folder(folder)
    root = find_data_root(data)
    unknown = f"no data root: set one with --data DIR or {DATA_VARIABLE}"
    notify(f"data root: {root}" if root else unknown)
    recipes = list(listings(folder, root))
    if as_json:
        print_json(list(map(_fields, recipes)))
        return
    width = max([0, *(len(item.recipe.name) for item in recipes)])
    for item in recipes:
        for reason in item.reasons:
            notify(f"{item.recipe.name} is {item.state}: {reason}")
        lacks = f"  (lacks {', '.join(item.lacking)})" if item.lacking else ""
        click.echo(f"{item.recipe.name:{width}}  {item.state:10}  {item.recipe.title}{lacks}")
        for name, here in item.needs.items() if files else ():
            click.echo(f"{'':{width}}  {'here   ' if here else 'missing'}  {name}")


def _fields(item: Listing) -> dict[str, object]:
    return {
        "name": item.recipe.name,
        "title": item.recipe.title,
        "state": item.state,
        "reasons": item.reasons,
        "needs": dict(item.needs),
        "seconds": item.seconds,
    }
