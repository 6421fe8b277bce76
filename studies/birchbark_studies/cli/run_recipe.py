"""`birchbark study run`: how are the tables of a paper reproduced?"""

from __future__ import annotations

import time
import traceback
from math import inf
from pathlib import Path

import click

from birchbark import BirchbarkError, InputError, defaults
from birchbark.cli.console import notify
from birchbark.cli.options import PATH, data_option, option, replace_option
from birchbark.cli.progress_lines import in_words
from birchbark.show.plural import plural
from birchbark_studies.cli.listings import listings
from birchbark_studies.on_cluster import TrainsOnCluster
from birchbark_studies.recipe_folder import recipe_path


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

    recipes = list(listings(folder, root))
    due = [
        item
        for item in recipes
        if item.state in (State.STALE, State.NO_RESULTS) and item.reasons != (PUBLISHED,)
    ]
    for item in recipes:
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
            except Exception as fault:  # of any kind: the other studies can still run
                failed += 1
                result = f"failed: {fault}"
                if not isinstance(fault, BirchbarkError | OSError):
                    notify(traceback.format_exc())
                    result = f"failed: {type(fault).__name__}: {fault}"
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
