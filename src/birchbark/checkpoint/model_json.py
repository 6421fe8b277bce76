"""How is JSON of a model directory read, whatever its bytes are?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from birchbark.artifact import read_json
from birchbark.errors import ArtifactError, CheckpointError, InputError


def read_any(path: Path) -> Any:
    """The JSON value at `path`; CheckpointError if it is missing or damaged."""
    try:
        return read_json(path, "JSON")
    except InputError:
        raise CheckpointError(
            "not a model directory", where=str(path.parent), remedy=f"there is no {path.name} in it"
        ) from None
    except ArtifactError as broken:
        raise CheckpointError(broken.what, where=broken.where) from broken


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object at `path`; CheckpointError if it is missing, damaged or something else."""
    values = read_any(path)
    if not isinstance(values, dict):
        raise CheckpointError("not a JSON object", where=str(path))
    return values
