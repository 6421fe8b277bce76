"""How is a model copied, with a statement of the scale of its scores?"""

from __future__ import annotations

import shutil
from pathlib import Path

from birchbark.artifact import new_directory, write_json
from birchbark.checkpoint.checkpoint import check_replaceable, open_any_head
from birchbark.checkpoint.heads import HEAD_KEY
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.score_scale import ScoreScale


def copy_with_scale(model: Path, scale: ScoreScale, target: Path, *, replace: bool = False) -> None:
    """Write a copy of `model` that states `scale` in its config.json.

    Raises InputError if `target` exists and `replace` is false, and CheckpointError if `model`
    cannot be read.
    """
    home = open_any_head(model).directory
    with new_directory(target, replace=replace, check=check_replaceable) as scratch:
        hidden = shutil.ignore_patterns(".*")
        shutil.copytree(model, scratch, ignore=hidden, dirs_exist_ok=True)
        path = scratch / home.relative_to(model) / "config.json"
        config = read_object(path) if path.exists() else {}
        own = config.get(HEAD_KEY) or {}
        write_json(path, config | {HEAD_KEY: own | scale.as_config()})
