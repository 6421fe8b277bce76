"""Where do fetched models lie, so that ranking finds them without the network?"""

from __future__ import annotations

import os
import re
from pathlib import Path

from birchbark.artifact import TEMPORARY

FOLDER = "BIRCHBARK_MODELS"  # environment variable
SOURCE = "source.json"  # in each of them: hub, id, revision, commit, checksums
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


def models_folder() -> Path:
    """Where BIRCHBARK_MODELS says; else birchbark/models in the user's data folder (XDG)."""
    if named := os.environ.get(FOLDER):
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "birchbark" / "models"


def is_hub_id(name: str) -> bool:
    """Whether a model on the hub can be called so: name, or owner/name."""
    return bool(re.fullmatch(rf"({_PART}/)?{_PART}", name)) and not re.search(r"--|\.\.", name)


def shelf(hub_id: str) -> Path:
    """Where the model fetched as `hub_id` lies, or will lie: owner--name in the models' folder."""
    return models_folder() / hub_id.replace("/", "--")


def shelved() -> list[tuple[str, Path]]:
    """Hub id and directory of every model in the models' folder, by name."""
    folder = models_folder()
    if not folder.is_dir():
        return []
    whole = (path for path in folder.iterdir() if not path.name.startswith(TEMPORARY))
    found = sorted(path for path in whole if (path / SOURCE).is_file())
    return [(path.name.replace("--", "/", 1), path) for path in found]
