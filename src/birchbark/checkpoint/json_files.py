"""How is untrusted JSON in a model directory read?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from birchbark.artifact import read_json
from birchbark.errors import ArtifactError, CheckpointError, InputError


def read_any(path: Path) -> Any:
    """Return the JSON value at `path`; CheckpointError if the file is missing or damaged."""
    try:
        return read_json(path, "JSON")
    except InputError:
        raise CheckpointError(
            "not a model directory",
            where=str(path.parent),
            remedy=f"it does not contain {path.name}",
        ) from None
    except ArtifactError as broken:
        raise CheckpointError(broken.what, where=broken.where) from broken


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object at `path`; CheckpointError if missing, damaged, or not an object."""
    values = read_any(path)
    if not isinstance(values, dict):
        raise CheckpointError("not a JSON object", where=str(path))
    return values
