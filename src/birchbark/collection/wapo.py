"""How are articles of the TREC Washington Post Collection (JSON lines) Documents?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from birchbark.collection.intake import Intake
from birchbark.collection.jsonl import json_object, take_id
from birchbark.collection.lines import parsed_lines
from birchbark.collection.markup import plain_text
from birchbark.errors import InputError
from birchbark.records import Document

READ = "sanitized_html"  # the kind of those parts of an article that hold its text


def read_wapo(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents of `TREC_Washington_Post_collection.v2.jl` and later, in the order of the file.

    The text is what the parts of the kind `sanitized_html` hold, without markup, a blank line
    between them; pictures, films, tweets, dates and authors are left out.
    """
    return parsed_lines(path, parse_article, intake)


def parse_article(line: str) -> Document:
    """The Document in one line."""
    values = json_object(line)
    doc_id = take_id(values, ("id",))
    contents = values.get("contents")
    if not isinstance(contents, list):
        raise InputError(f"document {doc_id} has no list of contents")
    title = values.get("title") or ""
    texts = [_text(part) for part in contents if isinstance(part, dict)]
    return Document(
        doc_id,
        {
            "title": " ".join(plain_text(title)[1].split()) if isinstance(title, str) else "",
            "text": "\n\n".join(filter(None, texts)),
        },
    )


def _text(part: dict[str, Any]) -> str:
    content = part.get("content")
    if part.get("type") != READ or not isinstance(content, str):
        return ""
    return plain_text(content)[1]
