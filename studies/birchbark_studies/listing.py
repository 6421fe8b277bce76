"""What does a recipe lack, and are its results those of this version?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from birchbark import BirchbarkError, InputError
from birchbark.artifact import read_json
from birchbark.checkpoint.locate import locate
from birchbark.collection.data_files import missing_files
from birchbark.errors import ArtifactError
from birchbark.section import Section
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.recipe import Recipe
from birchbark_studies.recipe_folder import results_folder
from birchbark_studies.staleness import MANIFEST, stale_because


class State(StrEnum):
    """Whether there are results of a recipe, and whether they are those of this version.

    current: the recipe, its models and its data are those that the results were measured with, and
    the published figures are the recipe's. stale: one of these has changed. unchecked: some of them
    are not here.
    """

    CURRENT = "current"
    STALE = "stale"
    UNCHECKED = "unchecked"
    NO_RESULTS = "no results"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Listing:
    """A recipe beside what is here of it.

    Attributes:
        results: The folder of its results, whether or not it exists.
        needs: Each file and model that it needs, and whether it is here.
        reasons: Why its results are stale or damaged; empty otherwise.
        seconds: How long it took when the results were measured; None without results. Models that
            a cache held were not trained again.
    """

    recipe: Recipe
    results: Path
    needs: Mapping[str, bool]
    state: State
    reasons: tuple[str, ...]
    seconds: float | None

    @property
    def lacking(self) -> list[str]:
        """The files and models that it needs and that are not here."""
        return [name for name, here in self.needs.items() if not here]


def read_as_measured(path: Path) -> Recipe:
    """Read a recipe, with its larger settings if its results were measured with them."""
    manifest = results_folder(path.parent) / path.stem / MANIFEST
    try:
        measured = read_json(manifest, "study")["recipe"]["larger"]
    except (InputError, ArtifactError, LookupError, TypeError):  # there are none, or damaged ones
        measured = False
    larger = measured is True and "larger" in Section.table(path)
    return read_recipe(path, larger)


def list_recipe(recipe: Recipe, root: Path | None) -> Listing:
    """Compare a recipe with the data below `root` (None for none), the models and its results."""
    missing = missing_files(recipe.files, root)
    needs = {file: file not in missing for file in recipe.files}
    needs |= {model: _is_available(model) for model in recipe.experiment.models}
    results = results_folder(recipe.path.parent) / recipe.name
    state, seconds = State.NO_RESULTS, None
    reasons: tuple[str, ...] = ()
    if results.is_dir():
        try:
            reasons = tuple(stale_because(recipe, results, root))
            state = State.CURRENT if all(needs.values()) else State.UNCHECKED
            manifest = read_json(results / MANIFEST, "study")
            if manifest["recipe"].get("larger") == recipe.larger:
                seconds = manifest.get("seconds")
        except (InputError, ArtifactError) as fault:
            state, reasons = State.DAMAGED, (str(fault),)
        else:
            state = State.STALE if reasons else state
    return Listing(recipe, results, needs, state, reasons, seconds)


def _is_available(model: str) -> bool:
    try:
        return locate(model).is_dir()
    except BirchbarkError:
        return False
