"""How is JSON of a model directory read, whatever its bytes are?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from birchbark.errors import CheckpointError


def read_any(path: Path) -> Any:
    """The JSON value at `path`; CheckpointError if it is missing or damaged."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(
            "not a model directory", where=str(path.parent), remedy=f"there is no {path.name} in it"
        ) from None
    except IsADirectoryError:
        raise CheckpointError("is a folder, not a file", where=str(path)) from None
    except RecursionError:
        raise CheckpointError("not valid JSON: nested too deeply", where=str(path)) from None
    except ValueError as broken:  # of JSON, of UTF-8, or a number of thousands of digits
        raise CheckpointError(f"not valid JSON: {broken}", where=str(path)) from broken


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object at `path`; CheckpointError if it is missing, damaged or something else."""
    values = read_any(path)
    if not isinstance(values, dict):
        raise CheckpointError("not a JSON object", where=str(path))
    return values
