"""How is a JSON object on a line turned into a Document?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from birchbark.collection.intake import Intake
from birchbark.collection.lines import parsed_lines
from birchbark.errors import InputError
from birchbark.records import Document

ID_NAMES = ("id", "_id", "doc_id", "docno", "docid")
TEXT_NAMES = ("text", "contents", "body")


def read_jsonl(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents with an id, a text, and every further field of the object.

    The id is the first of `id`, `_id`, `doc_id`, `docno`, `docid` that is there; the text the first
    of `text`, `contents`, `body`. Further strings are kept as they are; numbers, lists and objects
    are kept as JSON; null is the same as absent.
    """
    return parsed_lines(path, parse_document, intake)


def parse_document(line: str) -> Document:
    """The Document in one line of JSON."""
    return document_of(json_object(line))


def document_of(record: dict[str, Any]) -> Document:
    """The Document that an object of JSON stands for."""
    values = dict(record)
    doc_id = take_id(values, ID_NAMES)
    text_name = next((name for name in TEXT_NAMES if values.get(name) is not None), None)
    if text_name is None and values.get("title") is None:
        raise InputError(
            f"document {doc_id} has no text",
            wanted=f"a field named {' or '.join(TEXT_NAMES)}",
            found=", ".join(sorted(values)) or "no further field",
        )
    fields = {
        "text" if name == text_name else name: _as_text(value)
        for name, value in values.items()
        if value is not None
    }
    return Document(doc_id, fields)


def json_object(line: str) -> dict[str, Any]:
    """The JSON object in `line`; anything else is an InputError."""
    try:
        values = json.loads(line)
    except json.JSONDecodeError as broken:
        part = line.strip() == "{" or line.lstrip().startswith("[")
        raise InputError(
            f"broken JSON at column {broken.colno}: {broken.msg}",
            remedy="write one whole object on each line" if part else "",
        ) from None
    except (RecursionError, ValueError) as beyond:
        raise InputError(f"JSON too deep or with too long a number: {beyond}") from None
    if not isinstance(values, dict):
        raise InputError(
            "not a JSON object", wanted="one whole object on each line", found=type(values).__name__
        )
    return values


def take_id(values: dict[str, Any], names: tuple[str, ...]) -> str:
    """Remove and return the id: the first of `names` in `values`, a string or a whole number."""
    name = next((name for name in names if values.get(name) is not None), None)
    if name is None:
        raise InputError(
            "no id",
            wanted=f"a field named {' or '.join(names)}",
            found=", ".join(sorted(values)) or "an empty object",
        )
    value = values.pop(name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(
            f"field {name} is no id", wanted="a string or whole number", found=json.dumps(value)
        )
    try:
        return str(value)
    except ValueError:
        raise InputError(f"field {name} is no id: the number is too long") from None


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
