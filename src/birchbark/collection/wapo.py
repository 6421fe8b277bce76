"""How is the TREC Washington Post Collection (JSON lines) read as Documents?

`ir_datasets:wapo/v2` and `/v4` read the same collections, but this reader produces different texts:
- It reads only paragraphs; ir_datasets adds captions of pictures, blurbs of videos and galleries,
  and tweets.
- It parses paragraphs and titles as HTML. ir_datasets parses paragraphs as XML, which loses text
  outside elements and HTML's entities, and does not resolve entities in titles.
- It separates paragraphs by a blank line, ir_datasets by a line break.
Ids are the same, and so are titles and paragraphs without markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from birchbark.collection.jsonl import json_object
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import parse_file
from birchbark.collection.parsing.markup import plain_text
from birchbark.errors import InputError
from birchbark.record_values import take_id
from birchbark.records import Document

PARAGRAPH = "sanitized_html"  # the type of a part of an article that contains its text


def read_wapo(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each article, in file order.

    The text consists of the parts of type `sanitized_html`, without markup, separated by blank
    lines. Pictures, videos, tweets, dates and authors are left out.

    path: `TREC_Washington_Post_collection.v2.jl` or a later version.
    """
    return parse_file(path, parse_article, intake)


def parse_article(line: str) -> Document:
    """Return the Document in one line of the collection."""
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
    if part.get("type") != PARAGRAPH or not isinstance(content, str):
        return ""
    return plain_text(content)[1]
