"""`birchbark study`: how are the tables of a paper reproduced?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.cli.console import notify
from birchbark.cli.options import PATH, data_option, option, replace_option
from birchbark.errors import ArtifactError, BirchbarkError, InputError

if TYPE_CHECKING:
    from birchbark.study.recipe import Recipe


@click.group(
    epilog="Example: birchbark study run studies/uva-analyzers.toml --output uva",
    short_help="Reproduce tables of papers.",
)
def command() -> None:
    """Run a study from its recipe, or list the available recipes."""


@command.command(
    epilog="Example: birchbark study run studies/cord-fields.toml --output cord",
    short_help="Run a study and write its report.",
)
@click.argument("recipe", type=PATH)
@option("--output", required=True, type=PATH, help="Folder to write report, figures and runs to.")
@data_option
@option(
    "--cache",
    type=PATH,
    metavar="DIR",
    help="Folder in which indexes, BERT's scores and trained models are stored, so that an "
    "interrupted study can be resumed and nothing is computed twice.",
)
@option(
    "--device",
    default=defaults.DEVICE,
    help="Device for training and for scoring in fp32: cpu or cuda.",
)
@option(
    "--larger",
    is_flag=True,
    help="Use the settings in the recipe's table [larger], which take hours or need a GPU.",
)
@replace_option("study")
def run(
    recipe: Path,
    output: Path,
    data: Path | None,
    cache: Path | None,
    device: str,
    larger: bool,
    replace: bool,
) -> None:
    """Run the experiment in RECIPE (a TOML file), print its tables and write a report.

    The same recipe and data always give the same runs and figures, byte for byte. Only the manifest
    and studies that measure the cost of pipelines contain times.
    """
    from birchbark.artifact import refuse_existing
    from birchbark.collection.data_files import find_data_root
    from birchbark.experiments.recipe_file import read_recipe
    from birchbark.show.terminal import show_study
    from birchbark.study.run import run_study

    refuse_existing(output, replace=replace)
    outcome = run_study(
        *(read_recipe(recipe, larger), find_data_root(data), output),
        replace_output=replace,
        cache=cache,
        device=device,
        progress=notify,
    )
    show_study(outcome.tables)
    notify(f"report: {output / 'report.html'}")


@command.command(
    "list",
    epilog="Example: birchbark study list; with files: birchbark study list --files studies",
    short_help="List recipes and what they need.",
)
@click.argument("folder", type=PATH, required=False)
@data_option
@option("--files", is_flag=True, help="Also list all files and models that each recipe needs.")
def list_recipes(folder: Path | None, data: Path | None, files: bool) -> None:
    """List the recipes in FOLDER (by default, studies), and what each of them lacks.

    Results in FOLDER/results/NAME are current if the recipe, its models and its data are those that
    they were measured with, stale if one of these has changed, and unchecked if some are not here.
    """
    from birchbark.collection.data_files import DATA_VARIABLE, find_data_root
    from birchbark.experiments.recipe_file import read_recipe

    default_folder = Path(defaults.RECIPE_FOLDER)
    if folder is None and not default_folder.is_dir():
        notify(f"no folder {default_folder} here: use birchbark study list FOLDER")
        return
    folder = folder or default_folder
    if not folder.is_dir():
        raise InputError("no such folder", where=str(folder))
    root = find_data_root(data)
    unknown = f"no data root: set one with --data DIR or {DATA_VARIABLE}"
    notify(f"data root: {root}" if root else unknown)
    paths = sorted(folder.glob("*.toml"))
    width = max([0, *(len(path.stem) for path in paths)])
    for path in paths:
        try:
            _print_recipe(read_recipe(path), root, width, with_files=files)
        except InputError as fault:
            click.echo(f"{path.stem:{width}}  cannot be read: {fault}")


def _print_recipe(recipe: Recipe, root: Path | None, width: int, *, with_files: bool) -> None:
    """Print a recipe in one line, and, on request, each file and model that it needs.

    width: of the column of names.
    """
    from birchbark.collection.data_files import missing_files

    missing = missing_files(recipe.files, root)
    available = {file: file not in missing for file in recipe.files}
    available |= {model: _is_available(model) for model in recipe.experiment.models}
    lacking = [name for name, here in available.items() if not here]
    lacks = f"  (lacks {', '.join(lacking)})" if lacking else ""
    state = _state(recipe, root, complete=not lacking)
    click.echo(f"{recipe.path.stem:{width}}  {state:10}  {recipe.title}{lacks}")
    for name, here in available.items() if with_files else ():
        click.echo(f"{'':{width}}  {'here   ' if here else 'missing'}  {name}")


def _state(recipe: Recipe, root: Path | None, *, complete: bool) -> str:
    """Return whether the results beside a recipe, in results/NAME, are out of date.

    complete: whether all models and files that it needs are here, to be compared.
    """
    from birchbark.study.staleness import stale_because

    results = recipe.path.parent / "results" / recipe.name
    if not results.is_dir():
        return "no results"
    try:
        reasons = stale_because(recipe, results, root)
    except (InputError, ArtifactError) as fault:
        notify(f"{recipe.name}: {fault}")
        return "damaged"
    for reason in reasons:
        notify(f"{recipe.name} is stale: {reason}")
    if reasons:
        return "stale"
    return "current" if complete else "unchecked"


def _is_available(model: str) -> bool:
    from birchbark.checkpoint.locate import locate

    try:
        return locate(model).is_dir()
    except BirchbarkError:
        return False
