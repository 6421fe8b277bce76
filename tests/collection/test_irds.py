"""Is what ir_datasets offers read as its own files would be?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.records import Document, Query

ir_datasets = pytest.importorskip("ir_datasets", reason="ir_datasets is not installed")


class Article(NamedTuple):
    doc_id: str
    headline: str
    body: str
    source_xml: str


class Topic(NamedTuple):
    query_id: str
    title: str
    description: str

    def default_text(self) -> str:
        return self.title


class Judgment(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


@pytest.fixture
def name() -> Iterator[Path]:
    """A data set that ir_datasets knows while a test runs."""

    class Tiny:
        """Two documents, one of them judged."""

        def has_docs(self) -> bool:
            return True

        has_queries = has_qrels = has_docs

        def docs_iter(self) -> Iterator[Any]:
            yield Article("1", "Birch\n bark", "It floats.", "<nitf/>")
            yield Article("2", "", "Bees.", "<nitf/>")

        def queries_iter(self) -> Iterator[Any]:
            yield Topic("7", "birch", "What floats?")

        def qrels_iter(self) -> Iterator[Any]:
            yield Judgment("7", "1", 2, "0")

    known = ir_datasets.registry._registered
    known["birchbark-tiny"] = Tiny()
    yield Path("ir_datasets:birchbark-tiny")
    del known["birchbark-tiny"]


def test_a_collection(name: Path) -> None:
    """Documents, queries by any of their fields, judgments."""
    assert list(read_collection(str(name), Intake())) == [
        Document("1", {"title": "Birch bark", "text": "It floats."}),
        Document("2", {"title": "", "text": "Bees."}),
    ]
    assert read_queries(name) == [Query("7", "birch")]
    assert read_queries(name, ("title", "description")) == [Query("7", "birch What floats?")]
    assert read_qrels(name).grades == {"7": {"1": 2}}


def test_a_name_that_is_none() -> None:
    """One that ir_datasets does not know."""
    with pytest.raises(InputError, match="ir_datasets has no such data set"):
        list(read_collection("ir_datasets:nothing/here", Intake()))
