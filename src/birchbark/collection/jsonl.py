"""How are JSON lines read as Documents?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import parse_file
from birchbark.errors import InputError
from birchbark.records import Document


def read_jsonl(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each line. See `Document.from_dict` for a line's fields."""
    return parse_file(path, parse_document, intake)


def parse_document(line: str) -> Document:
    """Return the Document in a line of JSON."""
    return Document.from_dict(json_object(line))


def json_object(line: str) -> dict[str, Any]:
    """Parse `line` as a JSON object; InputError if it is not one, or if a key occurs twice."""
    try:
        values = json.loads(line, object_pairs_hook=_with_single_keys)
    except json.JSONDecodeError as error:
        spans_lines = line.strip() == "{" or line.lstrip().startswith("[")
        raise InputError(
            f"broken JSON at column {error.colno}: {error.msg}",
            remedy="write one complete object per line" if spans_lines else "",
        ) from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"JSON cannot be parsed: {error}") from None
    if not isinstance(values, dict):
        raise InputError(
            "not a JSON object", wanted="one complete object per line", found=type(values).__name__
        )
    return values


def _with_single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise InputError(f"the key {name!r} occurs twice in one object")
        values[name] = value
    return values
