"""Is a recipe read or refused, whatever is changed in it?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.recipe import Recipe
from fuzzing import broken_toml, fuzz, is_read

PACKAGE = Path(__file__).parents[1] / "birchbark_studies"
TEXTS = [path.read_text() for path in sorted((PACKAGE / "recipes").glob("*.toml"))]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A path for one file beside the committed trainings, which recipes name."""
    (tmp_path / "training").symlink_to(PACKAGE / "training")
    (tmp_path / "recipes").mkdir()
    return tmp_path / "recipes" / "a.toml"


def read(file: Path) -> Recipe:
    """Read a recipe, and its table [larger] if it has one."""
    return read_recipe(file, larger="[larger" in file.read_text("utf-8", "replace"))


@pytest.mark.parametrize("text", TEXTS)
def test_unbroken_ones_are_read(text: str, file: Path) -> None:
    """Otherwise the tests below would try little."""
    file.write_text(text)
    assert read(file)


def test_a_value_that_is_no_json_is_an_unknown_key(file: Path) -> None:
    """No key takes a date; the error says so, where a checksum of all values would fail."""
    file.write_text(f"when = 2024-05-01\n{TEXTS[0]}")
    with pytest.raises(InputError, match="when"):
        read_recipe(file)


@fuzz(30)
@given(text=broken_toml(TEXTS))
def test_broken_recipes(text: str, file: Path, tmp_path: Path) -> None:
    """The error names the recipe, or the training that it names."""
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    is_read(lambda: read(file), tmp_path)


@fuzz(15)
@given(data=st.data())
def test_no_key_is_ignored(data: st.DataObject, file: Path) -> None:
    """A key that nothing reads is refused, in any table but those of [larger]."""
    lines = data.draw(st.sampled_from(TEXTS)).splitlines()
    tables = [
        number for number, line in enumerate(lines) if line.startswith("[") and "larger" not in line
    ]
    lines.insert(data.draw(st.sampled_from([-1, *tables])) + 1, "mistaken = 1")
    file.write_text("\n".join(lines))
    with pytest.raises(InputError, match="mistaken"):
        read_recipe(file)
