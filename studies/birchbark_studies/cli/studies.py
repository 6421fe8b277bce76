"""`birchbark study run`, `list` and `refresh`: how are the tables of a paper reproduced?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark import BirchbarkError, InputError, defaults
from birchbark.cli.console import notify, print_json
from birchbark.cli.options import PATH, data_option, json_option, option, replace_option
from birchbark.cli.progress_lines import in_words
from birchbark.errors import ArtifactError
from birchbark.show.plural import plural
from birchbark_studies.on_cluster import TrainsOnCluster
from birchbark_studies.recipe_folder import RECIPES, recipe_path

if TYPE_CHECKING:
    from birchbark_studies.listing import Listing


@click.command(
    cls=TrainsOnCluster,
    epilog="Examples: birchbark study run cord-fields --output cord; all in a folder that is stale "
    "or missing: birchbark study run recipes --cache cache",
    short_help="Run a study and write its report.",
)
@click.argument("recipe", callback=lambda _context, _parameter, name: recipe_path(name))
@option(
    "--output",
    type=PATH,
    help="Folder to write report, figures and runs to.  [required, except for a folder of recipes]",
)
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
    output: Path | None,
    data: Path | None,
    cache: Path | None,
    device: str,
    larger: bool,
    replace: bool,
) -> None:
    """Run the experiment in RECIPE, print its tables and write a report.

    RECIPE is a name that `birchbark study list` prints, or a TOML file.

    The same recipe and data always give the same runs and figures, byte for byte. Only the manifest
    and studies that measure the cost of pipelines contain times.

    Given a folder, the command runs every recipe in it whose results in RECIPE/results are
    missing or stale and whose data and models are available, the shortest first. Each study
    replaces its results when it is finished; the command can be stopped at any time and resumes
    where it stopped.
    """
    from birchbark.artifact import refuse_existing
    from birchbark.collection.data_files import find_data_root
    from birchbark.show.terminal import show_study
    from birchbark_studies.experiments.recipe_file import read_recipe
    from birchbark_studies.run import run_study

    if recipe.is_dir():
        for given, name in ((output, "--output"), (larger, "--larger"), (replace, "--replace")):
            if given:
                raise InputError(f"{name} cannot be used with a folder of recipes")
        _run_all(recipe, find_data_root(data), cache, device)
        return
    if output is None:
        raise InputError("no folder to write to", wanted="--output DIR")
    refuse_existing(output, replace=replace)
    outcome = run_study(
        read_recipe(recipe, larger),
        find_data_root(data),
        output,
        replace_output=replace,
        cache=cache,
        device=device,
        progress=notify,
    )
    show_study(outcome.tables)
    notify(f"report: {output / 'report.html'}")


def _run_all(folder: Path, root: Path | None, cache: Path | None, device: str) -> None:
    """Run the studies in `folder` whose results are stale or missing; report all at the end."""
    from birchbark_studies.listing import State
    from birchbark_studies.run import run_study
    from birchbark_studies.staleness import PUBLISHED

    listings = list(_listings(folder, root))
    due = [
        item
        for item in listings
        if item.state in (State.STALE, State.NO_RESULTS) and item.reasons != (PUBLISHED,)
    ]
    for item in listings:
        if item.reasons == (PUBLISHED,):
            notify(f"{item.recipe.name}: {PUBLISHED}")
        if item.state is State.DAMAGED:
            notify(f"{item.recipe.name}: {item.reasons[0]}; to run it again, delete {item.results}")
    ready = sorted(
        (item for item in due if not item.lacking),
        key=lambda item: inf if item.seconds is None else item.seconds,
    )
    known = sum(item.seconds or 0 for item in ready)
    notify(
        f"{plural(len(ready), 'study')} to run, which took {in_words(known)} last time, not "
        "counting "
        f"models that were already cached; {len(due) - len(ready)} cannot run, because data or "
        "models are missing"
    )
    lines, failed = [], 0
    try:
        for number, item in enumerate(ready, 1):
            name = item.recipe.name
            notify(f"[{number} of {len(ready)}] {name}: {item.recipe.title}")
            started = time.perf_counter()
            try:
                run_study(
                    item.recipe,
                    root,
                    item.results,
                    replace_output=True,
                    cache=cache,
                    device=device,
                    progress=lambda text: notify(f"  {text}"),
                )
                result = "done"
            except (BirchbarkError, OSError, ValueError) as fault:
                result, failed = f"failed: {fault}", failed + 1
                notify(f"  {result}")
            seconds = time.perf_counter() - started
            lines.append(f"{name:24} {item.state:10} {in_words(seconds):>8}  {result}")
    finally:
        lines += [
            f"{item.recipe.name:24} {item.state:10} {'':8}  not run" for item in ready[len(lines) :]
        ]
        for line in lines:
            click.echo(line)
    if failed:
        raise BirchbarkError(f"{plural(failed, 'study')} failed")


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

    folder = _recipe_folder(folder)
    root = find_data_root(data)
    unknown = f"no data root: set one with --data DIR or {DATA_VARIABLE}"
    notify(f"data root: {root}" if root else unknown)
    listings = list(_listings(folder, root))
    if as_json:
        print_json(list(map(_fields, listings)))
        return
    width = max([0, *(len(item.recipe.name) for item in listings)])
    for item in listings:
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


@click.command(
    epilog="Example: birchbark study refresh",
    short_help="Write the pages of finished results again.",
)
@click.argument("folder", type=PATH, required=False)
@data_option
def refresh(folder: Path | None, data: Path | None) -> None:
    """Write the README.md of all results in FOLDER/results again.

    By default, these are the results of the papers' recipes, in Birchbark's repository.

    Title, source and findings are those that the recipe has now, with numbers from the tables;
    results that are stale say so, and why. The figures stay those of results.json. If nothing but
    published figures has changed, results.json gets those of the recipe, and is no longer stale.
    """
    from birchbark.collection.data_files import find_data_root
    from birchbark_studies.run import README
    from birchbark_studies.run import refresh as write_again

    root = find_data_root(data)
    finished = [item for item in _listings(_recipe_folder(folder), root) if item.results.is_dir()]
    changed = failed = 0
    for item in finished:
        try:
            if write_again(item.recipe, item.results, item.reasons):
                click.echo(item.results / README)
                changed += 1
        except (InputError, ArtifactError) as fault:
            notify(str(fault))
            failed += 1
    notify(f"{plural(len(finished), 'study')}, {changed} changed")
    if failed:
        raise ArtifactError(f"no page could be written for {plural(failed, 'study')}")


def _recipe_folder(folder: Path | None) -> Path:
    """Return the folder of recipes, by default this package's; InputError if there is none."""
    folder = folder or RECIPES
    if not folder.is_dir():
        raise InputError("no such folder", where=str(folder), wanted="a folder of recipes")
    return folder


def _listings(folder: Path, root: Path | None) -> Iterator[Listing]:
    """Yield the recipes in a folder, by name; those that cannot be read are reported."""
    from birchbark_studies.experiments.recipe_file import read_recipe
    from birchbark_studies.listing import list_recipe

    for path in sorted(folder.glob("*.toml")):
        try:
            recipe = read_recipe(path)
        except InputError as fault:
            notify(f"{path.stem} cannot be read: {fault}")
        else:
            yield list_recipe(recipe, root)
