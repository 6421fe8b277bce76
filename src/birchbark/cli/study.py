"""`birchbark study`: a table of a paper, measured anew on collections that are here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.options import DATA, FILE, OR_REPLACE
from birchbark.cli.talk import say
from birchbark.errors import BirchbarkError, InputError

if TYPE_CHECKING:
    from birchbark.study.recipe import Recipe

USUAL_FOLDER = Path("studies")


@click.group(
    epilog="Example: birchbark study run studies/uva-analyzers.toml --output uva",
    short_help="Repeat a paper's tables on collections of your own.",
)
def command() -> None:
    """Run a study from its recipe, or list the recipes there are."""


@command.command(epilog="Example: birchbark study run studies/cord-fields.toml --output cord")
@click.argument("recipe", type=FILE)
@click.option("--output", required=True, type=FILE, help="Folder for report, figures and runs.")
@DATA
@click.option(
    "--keep",
    type=FILE,
    metavar="DIR",
    help="Keep BERT's scores and trained models here: an interrupted study goes on, and nothing is "
    "computed twice.",
)
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="What is trained on, and scored on in float32: cpu, cuda.",
)
@click.option(
    "--larger", is_flag=True, help="With the settings of its table [larger]: hours, or a GPU."
)
@click.option("--replace", is_flag=True, help="Replace the study that is there.")
def run(
    recipe: Path,
    output: Path,
    data: Path | None,
    keep: Path | None,
    device: str,
    larger: bool,
    replace: bool,
) -> None:
    """Measure what RECIPE (a TOML file) asks for; print its tables and write a report.

    The same recipe and data give the same runs and figures, byte for byte; times are in the
    manifest alone, and in what pipelines cost.
    """
    from birchbark.artifact import refuse_existing
    from birchbark.cli.tables import show_study
    from birchbark.collection.root import find_root
    from birchbark.study.recipe_file import read_recipe
    from birchbark.study.run import run_study

    refuse_existing(output, replace=replace, remedy=OR_REPLACE)
    read = read_recipe(recipe, larger)
    outcome = run_study(
        *(read, find_root(data), output),
        replace_output=replace,
        kept=keep,
        device=device,
        tell=say,
    )
    show_study(outcome.tables)
    say(f"report: {output / 'report.html'}")


@command.command("list", epilog="Example: birchbark study list studies")
@click.argument("folder", type=FILE, required=False)
@DATA
def list_recipes(folder: Path | None, data: Path | None) -> None:
    """List the recipes in FOLDER, what each needs, and whether it is there.  [default: studies]"""
    from birchbark.collection.root import VARIABLE, find_root
    from birchbark.study.recipe_file import read_recipe

    if folder is None and not USUAL_FOLDER.is_dir():
        say("no folder studies here; name the one that holds recipes: birchbark study list FOLDER")
        return
    folder = folder or USUAL_FOLDER
    if not folder.is_dir():
        raise InputError("no such folder", where=str(folder))
    root = find_root(data)
    say(f"data root: {root}" if root else f"no data root: name one with --data DIR or {VARIABLE}")
    for path in sorted(folder.glob("*.toml")):
        try:
            _show(read_recipe(path), root)
        except InputError as fault:
            click.echo(f"{path}  cannot be read\n  {fault}")


def _show(recipe: Recipe, root: Path | None) -> None:
    """A recipe, and each thing it needs."""
    from birchbark.collection.root import missing_files

    missing = missing_files(recipe.files, root)
    needs = {file: file not in missing for file in recipe.files}
    needs |= {model: _is_here(model) for model in recipe.experiment.models}
    state = "ready" if all(needs.values()) else f"{list(needs.values()).count(False)} missing"
    click.echo(f"{recipe.path}  {recipe.kind}  {state}\n  {recipe.title}")
    for name, here in needs.items():
        click.echo(f"  {'here   ' if here else 'missing'}  {name}")


def _is_here(model: str) -> bool:
    from birchbark.checkpoint.named import locate

    try:
        return locate(model).is_dir()
    except BirchbarkError:
        return False
