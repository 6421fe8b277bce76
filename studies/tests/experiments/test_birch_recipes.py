"""Do the recipes for Robust04, Core17 and Core18 run on files as they are distributed?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe_folder import RECIPES
from birchbark_studies.run import run_study
from original_formats import write_core17, write_core18, write_robust04
from small_study import table_of

MODELS = re.compile(r'= \[?"\.\./training[^\n]*')


def run(root: Path, name: str, model: Path) -> tuple[Outcome, list[str]]:
    """Run a recipe with a tiny model in place of those that it trains; also return what it told."""
    text = MODELS.sub(f'= "{model}"', (RECIPES / f"{name}.toml").read_text())
    path, told = root / f"{name}.toml", list[str]()
    path.write_text(text)
    cache = root / "cache"
    outcome = run_study(read_recipe(path), root, root / name, cache=cache, progress=told.append)
    again = list[str]()
    repeated = run_study(
        read_recipe(path), root, root / "again", cache=cache, progress=again.append
    )
    assert repeated == outcome
    assert any(": indexing" in line for line in told)
    assert not any(": indexing" in line for line in again)  # it was kept
    notes = [line for line in told if line.startswith("note")]
    assert notes == [line for line in again if line.startswith("note")]
    return outcome, notes


def check_rows(outcome: Outcome, table: str = "evidence") -> list[str]:
    """Return the names of the measured rows, which all have values."""
    (measured,) = (group for group in table_of(outcome, table).groups if not group.published)
    assert all(cell.value is not None for row in measured.rows for cell in row.cells)
    assert len(table_of(outcome, table).groups) > 1  # with the paper's figures
    return [row.name for row in measured.rows]


def test_robust04(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """Files that are no documents, and those of the Congressional Record, are not read."""
    pytest.importorskip("ncompress")
    write_robust04(tmp_path)
    outcome, notes = run(tmp_path, "birch-robust04", bert(labels=1))
    assert notes == [
        "note: Robust04: file without <DOC> not read (2 times)",
        "note: Robust04: excluded folder not read (1 times)",
    ]
    assert len(check_rows(outcome)) == 2 + 3 * 6
    assert "p < .01" in table_of(outcome, "evidence").note
    assert {len(check_rows(outcome, name)) for name in ("lengths", "pruned")} == {8, 7}
    lengths = table_of(outcome, "lengths").groups[0].rows[0]
    assert [cell.value for cell in lengths.cells] == ["3", "1", "1", "1"]


def test_core17(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """What is no article is told, and so are articles without text."""
    write_core17(tmp_path)
    outcome, notes = run(tmp_path, "birch-core17", bert(labels=1))
    assert notes == [
        "note: Core17: document without text (1 times)",
        "note: Core17: file of another type not read: .pdf (1 times)",
    ]
    assert len(check_rows(outcome)) == 2 + 3 * 5


def test_core18(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """Articles with parts that are null or no paragraphs are read without a note."""
    write_core18(tmp_path)
    outcome, notes = run(tmp_path, "birch-core18", bert(labels=1))
    assert notes == []
    assert len(check_rows(outcome)) == 2 + 3 * 5
