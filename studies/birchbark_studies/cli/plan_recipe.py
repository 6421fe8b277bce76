"""`birchbark study plan`: what does a study train and read, and about how long does it take?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.cli.console import print_json
from birchbark.cli.options import data_option, json_option, option
from birchbark.cli.progress_lines import in_words
from birchbark.show.plural import plural
from birchbark_studies.recipe_folder import recipe_path

if TYPE_CHECKING:
    from birchbark_studies.listing import Listing
    from birchbark_studies.plan import Plan, PlannedReading, PlannedTraining


@click.command(
    epilog="Example: birchbark study plan birch-robust04 --larger --device cuda",
    short_help="Tell what a study trains and reads, and how long it takes.",
)
@click.argument("recipe", callback=lambda _context, _parameter, name: recipe_path(name))
@data_option
@option("--larger", is_flag=True, help="Plan with the settings in the recipe's table [larger].")
@option(
    "--device",
    default=defaults.DEVICE,
    type=click.Choice(["cpu", "cuda"]),
    help="Estimate for this machine's processor as it is now, or for a GPU.",
)
@json_option
def plan(recipe: Path, data: Path | None, larger: bool, device: str, as_json: bool) -> None:
    """Print the training runs of RECIPE, what its models read, and an estimate of the time.

    Nothing is run, and neither data nor models need to be here: what only they tell is said to be
    unknown. RECIPE may be a folder, all of whose recipes are planned; with --larger, those that
    have larger settings.

    Times are estimates to an order of magnitude, for texts as long as a training allows, and
    for documents as long as the first ones of a file that is here, or of 256 tokens.
    """
    from birchbark.collection.data_files import find_data_root
    from birchbark.section import Section
    from birchbark_studies.experiments.recipe_file import read_recipe
    from birchbark_studies.listing import list_recipe
    from birchbark_studies.plan import plan_study

    root = find_data_root(data)
    paths = [recipe]
    if recipe.is_dir():
        every = sorted(recipe.glob("*.toml"))
        paths = [p for p in every if not larger or "larger" in Section.table(p)]
    planned = []
    for path in paths:
        item = list_recipe(read_recipe(path, larger), root)
        planned.append((item, plan_study(item.recipe, root, device)))
    if as_json:
        print_json([_fields(item, of_study) for item, of_study in planned])
        return
    for item, of_study in planned:
        click.echo("\n".join(_lines(item, of_study, device)))


def _fields(item: Listing, of_study: Plan) -> dict[str, object]:
    return {
        "name": item.recipe.name,
        "lacks": item.lacking,
        **asdict(of_study),
        "seconds": of_study.seconds,
        "unknown": of_study.unknown,
    }


def _lines(item: Listing, of_study: Plan, device: str) -> Iterator[str]:
    """Yield the lines that describe one study."""
    recipe = item.recipe
    yield f"{recipe.name}{' --larger' * recipe.larger}: {recipe.title}"
    if item.lacking:
        yield f"  lacks {', '.join(item.lacking)}"
    if of_study.trainings:
        models = plural(len(recipe.experiment.chains), "model")
        yield f"  trains {models} by {plural(len(of_study.trainings), 'training run')}"
    for run, count in Counter(map(_training, of_study.trainings)).items():
        yield f"    {f'{count} × ' if count > 1 else ''}{run}"
    for part in of_study.readings:
        yield f"  reads {_read(part)}, {part.collection}; {_time(part.seconds)}"
    for reason in of_study.unknown:
        yield f"  unknown: {reason}"
    parts = [f"{in_words(of_study.seconds)} on {device}"] if of_study.seconds else []
    parts += ["what is unknown"] if of_study.unknown else []
    last = f"; {in_words(item.seconds)} last time" if item.seconds else ""
    yield f"  estimate: {' and '.join(parts) or 'no model is trained or reads documents'}{last}"


def _read(part: PlannedReading) -> str:
    documents = "documents" if part.documents is None else f"{part.documents:,} documents"
    queries = "its queries" if part.queries is None else plural(part.queries, "query")
    of_each = f"{documents} for each of {queries}" if part.documents != 0 else ""
    times = "once" if part.times_encoded == 1 else f"{part.times_encoded} times"
    of_all = f"all documents {times}" if part.times_encoded else ""
    return " and ".join(filter(None, (of_each, of_all)))


def _training(run: PlannedTraining) -> str:
    texts = "" if run.texts is None else f", {run.texts:,} texts"
    return f"{run.base} → {run.title}: {run.length}{texts}; {_time(run.seconds)}"


def _time(seconds: float | None) -> str:
    return "time unknown" if seconds is None else f"about {in_words(seconds)}"
