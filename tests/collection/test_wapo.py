"""Are articles of the Washington Post collection read?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document

ARTICLE = {
    "id": "b2e89334-33f9-11e1-825f-dabc29fd7071",
    "article_url": "https://example.org/a",
    "title": "Canoes &amp; bees",
    "author": "A. Writer",
    "published_date": 1325376562000,
    "contents": [
        {"type": "kicker", "content": "Rivers"},
        {"type": "title", "content": "Canoes & bees"},
        {"type": "byline", "content": "By A. Writer"},
        {"type": "image", "fullcaption": "A canoe", "imageURL": "https://example.org/p"},
        None,
        {
            "type": "sanitized_html",
            "subtype": "paragraph",
            "content": 'Bark <a href="x">floats</a> &mdash; <i>always</i>.',
        },
        {"type": "sanitized_html", "subtype": "paragraph", "content": "Bees fly."},
        {"type": "tweet", "content": {"text": "seen"}},
        {"type": "author_info", "bio": "Writes."},
    ],
    "type": "article",
}


def test_articles(tmp_path: Path) -> None:
    """Paragraphs without markup, pictures, authors and dates; the title may be missing."""
    path = tmp_path / "collection.jl"
    path.write_text(
        json.dumps(ARTICLE) + "\n" + json.dumps({"id": "n", "title": None, "contents": []}) + "\n"
    )
    assert list(read_collection(str(path), Intake())) == [
        Document(
            "b2e89334-33f9-11e1-825f-dabc29fd7071",
            {"title": "Canoes & bees", "text": "Bark floats — always.\n\nBees fly."},
        ),
        Document("n", {"title": "", "text": ""}),
    ]


def test_errors(tmp_path: Path) -> None:
    """The error names the line."""
    path = tmp_path / "collection.jl"
    path.write_text(json.dumps({"id": "n", "title": "t"}) + "\n")
    with pytest.raises(InputError, match=r"collection\.jl:1: document n has no list of contents"):
        list(read_collection(str(path), Intake()))
