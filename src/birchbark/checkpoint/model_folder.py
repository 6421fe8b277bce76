"""Where are downloaded models stored, so that ranking finds them without the network?"""

from __future__ import annotations

import os
import re
from pathlib import Path

from birchbark.artifact import TEMPORARY

FOLDER_VARIABLE = "BIRCHBARK_MODELS"  # environment variable
SOURCE = "source.json"  # file in each downloaded model: hub, id, revision, commit, checksums
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


def models_folder() -> Path:
    """Return $BIRCHBARK_MODELS, or birchbark/models in the user's data folder (XDG)."""
    if folder := os.environ.get(FOLDER_VARIABLE):
        return Path(folder).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data).expanduser() / "birchbark" / "models"


def is_hub_id(name: str) -> bool:
    """Whether `name` has the form of a model's id on the hub: NAME or OWNER/NAME."""
    return bool(re.fullmatch(rf"({_NAME}/)?{_NAME}", name)) and not re.search(r"--|\.\.", name)


def model_path(hub_id: str) -> Path:
    """Return the directory of a downloaded model: OWNER--NAME in the models folder."""
    return models_folder() / hub_id.replace("/", "--")


def fetched_models() -> list[tuple[str, Path]]:
    """Return the hub id and directory of each model in the models folder, sorted by directory."""
    folder = models_folder()
    if not folder.is_dir():
        return []
    complete = (path for path in folder.iterdir() if not path.name.startswith(TEMPORARY))
    paths = sorted(path for path in complete if (path / SOURCE).is_file())
    return [(path.name.replace("--", "/", 1), path) for path in paths]
