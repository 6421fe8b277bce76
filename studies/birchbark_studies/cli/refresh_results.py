"""`birchbark study refresh`: how are the pages of finished results written again?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark import InputError
from birchbark.cli.console import notify
from birchbark.cli.options import PATH, data_option
from birchbark.errors import ArtifactError
from birchbark.show.plural import plural
from birchbark_studies.cli.listings import listings, recipe_folder


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
    finished = [item for item in listings(recipe_folder(folder), root) if item.results.is_dir()]
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
