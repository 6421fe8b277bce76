"""Do the pages of studies that train far less than their paper say so?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark_studies.demonstration import demonstration_note
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.markdown import render_markdown
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe_folder import RECIPES
from birchbark_studies.report import render_report
from birchbark_studies.stored_results import StoredResults
from test_published_settings import PREFIXES, SETTINGS

STAND_INS = {  # trainings of smaller models or shorter inputs than a paper's
    RECIPES.parent / name
    for entries in SETTINGS.values()
    for entry in entries
    for name, ours in entry.get("unlike", {}).items()
    if {"base", "max_length"} & ours.keys()
}
PAPERS = [path for path in sorted(RECIPES.glob("*.toml")) if path.stem.split("-")[0] in PREFIXES]


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_stand_ins_are_demonstrations(path: Path) -> None:
    """A study of a paper is one if it runs a training that stands in for the paper's."""
    recipe = read_recipe(path)
    trainings = {t.path.resolve() for chain in recipe.experiment.chains.values() for t in chain}
    assert bool(recipe.demonstration) == bool(trainings & STAND_INS)


@pytest.mark.parametrize(
    ("name", "larger", "size"),
    [
        ("birch-core17", False, "12,800 texts; in the thesis on 12.8 million"),  # QA, then MB
        ("birch-time", False, "12,800 texts; in the thesis"),
        ("uva-relemb", False, "22,800 texts; in the paper"),
        ("cord-adaptation", False, "8,400 texts or all of titles; the report"),
        ("passages-settings", True, "336,000 texts; in the thesis on 630,000"),
    ],
)
def test_sizes(name: str, larger: bool, size: str) -> None:
    """All runs of a model count; data sets that models read in full are named apart."""
    assert size in demonstration_note(read_recipe(RECIPES / f"{name}.toml", larger))


@pytest.mark.parametrize("larger", [False, True])
def test_pages(larger: bool) -> None:
    """The sentence stands on the page and in the report, unless larger settings are the paper's."""
    recipe = read_recipe(RECIPES / "birch-core17.toml", larger)
    bare = StoredResults((), (), recipe.bm25, recipe.depth, recipe.seed, "cpu")
    for page in (
        render_markdown(recipe, bare),
        render_report(recipe, Outcome((), ()), {}, "cpu"),
    ):
        assert ("A demonstration: a model is trained here on" in page) == (not larger)
