"""Do all committed recipes run, from their trainings to their tables?"""

from __future__ import annotations

from pathlib import Path

import pytest
from committed_recipes import RECIPES, run, small_recipe

from birchbark.section import Section

pytest.importorskip("torch", reason="torch is not installed")


def names_models(path: Path) -> bool:
    """Return whether the larger settings have models of their own, and not only other numbers."""
    return any("models" in key for key in Section.table(path).get("larger", ()))


LARGER = list(filter(names_models, RECIPES))


@pytest.mark.filterwarnings("ignore:.* does not state the scale")  # a model trained here
@pytest.mark.parametrize(
    ("path", "larger"),
    [*((path, False) for path in RECIPES), *((path, True) for path in LARGER)],
    ids=lambda value: value.stem if isinstance(value, Path) else "larger" if value else "",
)
def test_a_recipe_runs(path: Path, larger: bool, tmp_path: Path) -> None:
    """It runs on small files in the formats of its data, with trainings of two steps."""
    if path.stem.endswith("robust04"):
        pytest.importorskip("ncompress")
    recipe = small_recipe(path, tmp_path, larger)
    outcome = run(recipe, tmp_path)
    layout = recipe.experiment.layout(recipe.measures)
    assert {table.name for table in outcome.tables} <= set(layout)
    for table in outcome.tables:
        measured = [group for group in table.groups if not group.published]
        assert any(cell.value is not None for g in measured for row in g.rows for cell in row.cells)
