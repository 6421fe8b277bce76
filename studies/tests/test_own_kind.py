"""Does the kind of study in docs/how-to/run-a-study.md run, once it is installed?"""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from birchbark.errors import InputError
from birchbark_studies.experiments import recipe_file
from birchbark_studies.experiments.recipe_file import ENTRY_POINTS, read_recipe
from birchbark_studies.run import run_study
from small_study import values_of, write_collection

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-a-study.md"


def test_the_documented_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code, entry point and recipe, as they are written there."""
    text = PAGE.read_text()
    [code] = re.findall(r"```python\n# depths\.py\n(.*?)```", text, re.DOTALL)
    packaging, recipe = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[-2:]
    [(group, name, value)] = re.findall(r'entry-points\."(.+)"\]\n(\w+) = "(.+)"', packaging)
    (tmp_path / "depths.py").write_text(code)
    (tmp_path / "recipe.toml").write_text(recipe)
    write_collection(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="unknown kind 'depths'"):
        read_recipe(tmp_path / "recipe.toml")
    found = EntryPoints([EntryPoint(name, value, group)])
    assert group == ENTRY_POINTS
    monkeypatch.setattr(recipe_file, "entry_points", lambda group: found)
    outcome = run_study(read_recipe(tmp_path / "recipe.toml"), tmp_path, tmp_path / "out")
    rows = values_of(outcome, "found")
    assert list(rows) == ["the best 1", "the best 2", "the best 5"]
    assert 0 < rows["the best 1"][0] < rows["the best 5"][0] <= 1
    assert "Found by BM25" in (tmp_path / "out" / "README.md").read_text()
