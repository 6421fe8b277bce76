"""Are a study's results those of the models, the data and the recipe that are here now?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from birchbark import InputError
from birchbark.artifact import read_json
from birchbark.collection.data_files import data_fingerprint, data_path, missing_files
from birchbark.errors import ArtifactError, CheckpointError, MissingPackageError
from birchbark_studies.models import fingerprint_of
from birchbark_studies.published import with_published
from birchbark_studies.recipe import Recipe
from birchbark_studies.stored_results import plain, read_results

MANIFEST = "manifest.json"
SHOWN_TRAININGS = 3
PUBLISHED = "the published figures have changed (`birchbark study refresh` writes them)"


def stale_because(recipe: Recipe, results: Path, root: Path | None) -> list[str]:
    """Return why results are out of date; an empty list if they are not.

    Compared are the recipe, the settings of its training runs, the models that must exist before
    the study, and the data files. Models and files that are not here are left out. If all are
    equal, the published figures are compared.

    results: the folder of the results. root: the data root, None for none. Raises InputError if the
    folder has no manifest or no results, and ArtifactError if they are damaged.
    """
    manifest = read_json(results / MANIFEST, "study")
    if not isinstance(manifest, dict) or not isinstance(manifest.get("recipe"), dict):
        raise ArtifactError("damaged study", where=str(results / MANIFEST))
    tables = read_results(results).tables
    quoted = any(
        plain(asdict(with_published(table, recipe.published))) != plain(asdict(table))
        for table in tables
    )
    return [*_changes(recipe, manifest, root)] or [PUBLISHED] * quoted


def _changes(recipe: Recipe, manifest: dict[str, Any], root: Path | None) -> Iterator[str]:
    if manifest["recipe"].get("settings") != recipe.settings:
        yield "the recipe has changed"
    before, trainings = manifest.get("trainings", {}), recipe.experiment.trainings
    trained = [name for name, settings in trainings.items() if before.get(name) != settings]
    if len(trained) > SHOWN_TRAININGS:
        yield f"the training of {len(trained)} models has changed"
    else:
        yield from (f"the training of {name} has changed" for name in trained)
    required = manifest.get("required", {})
    for model in recipe.experiment.models:
        try:
            now = fingerprint_of(model)
        except (InputError, CheckpointError, MissingPackageError):
            continue
        if required.get(model) != now:
            yield f"{model} has changed"
    inputs, missing = manifest.get("inputs", {}), missing_files(recipe.files, root)
    for name in recipe.files:
        if root is None or name in missing or name.startswith("ir_datasets:"):
            continue
        if inputs.get(name) != data_fingerprint(data_path(root, name)):
            yield f"{name} has changed"
