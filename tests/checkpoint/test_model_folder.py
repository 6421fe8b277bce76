"""Where are downloaded models, and which names are those of models on the hub?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.checkpoint.model_folder import (
    FOLDER_VARIABLE,
    SOURCE,
    fetched_models,
    is_hub_id,
    model_path,
    models_folder,
)


def test_the_folder_is_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a variable, it is in the user's data folder."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert models_folder() == tmp_path
    assert model_path("owner/model") == tmp_path / "owner--model"
    monkeypatch.delenv(FOLDER_VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert models_folder() == tmp_path / "data" / "birchbark" / "models"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert models_folder() == tmp_path / "home" / ".local" / "share" / "birchbark" / "models"
    monkeypatch.setenv("XDG_DATA_HOME", "~/data")  # as no shell has expanded it
    assert models_folder() == tmp_path / "home" / "data" / "birchbark" / "models"
    monkeypatch.setenv(FOLDER_VARIABLE, "~/models")
    assert models_folder() == tmp_path / "home" / "models"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("bert-base-uncased", True),
        ("owner/Model_v1.5", True),
        ("a/b/c", False),
        ("../model", False),
        ("owner/..", False),
        ("owner--model", False),
        ("-x", False),
        ("model\n", False),
        ("", False),
    ],
)
def test_ids_of_the_hub(name: str, known: bool) -> None:
    """No id leads out of the folder, and each has a folder of its own."""
    assert is_hub_id(name) is known


def test_complete_models_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a source is none, and one that is being written is left out."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "models"))
    assert fetched_models() == []
    for name in ("owner--b--c", "a", "other", ".birchbark-tmp-x"):
        (tmp_path / "models" / name).mkdir(parents=True)
        if name != "other":
            (tmp_path / "models" / name / SOURCE).write_text("{}")
    assert fetched_models() == [
        ("a", tmp_path / "models" / "a"),
        ("owner/b--c", tmp_path / "models" / "owner--b--c"),
    ]
