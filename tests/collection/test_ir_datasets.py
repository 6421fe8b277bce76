"""Are collections, queries and qrels of ir_datasets read like those in files?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from birchbark.collection.documents import collection_format, read_collection
from birchbark.collection.parsing.intake import Intake
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
    """A data set that is registered with ir_datasets during a test."""

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
    """Documents, queries by any of their fields, and judgments."""
    assert list(read_collection(str(name), Intake())) == [
        Document("1", {"title": "Birch bark", "text": "It floats."}),
        Document("2", {"title": "", "text": "Bees."}),
    ]
    assert read_queries(name) == [Query("7", "birch")]
    assert read_queries(name, ("title", "description")) == [Query("7", "birch What floats?")]
    assert read_qrels(name).grades == {"7": {"1": 2}}


class Trial(NamedTuple):
    doc_id: str
    title: str
    summary: str

    def default_text(self) -> str:
        return f"{self.title} {self.summary}"


def test_other_field_names(name: Path) -> None:
    """The default text is used; unknown fields and contradicting grades are errors."""
    tiny = ir_datasets.registry._registered["birchbark-tiny"]
    tiny.docs_iter = lambda: iter([Trial("1", "Bees", "They dance.")])
    assert [d.text for d in read_collection(str(name), Intake())] == ["Bees They dance."]
    with pytest.raises(InputError, match=r"no field descripton.*query_id, title, description"):
        read_queries(name, ("descripton",))
    tiny.qrels_iter = lambda: iter([Judgment("7", "1", 2, "0"), Judgment("7", "1", 0, "0")])
    with pytest.raises(InputError, match="judged twice for query 7"):
        read_qrels(name)

    def broken() -> Iterator[Any]:
        raise RuntimeError("no licence")

    tiny.docs_iter = broken
    with pytest.raises(
        InputError, match=r"cannot read it: no licence.*ir-datasets\.com/birchbark-"
    ):
        list(read_collection(str(name), Intake()))


def test_queries_of_trec_car_keep_their_headings(name: Path) -> None:
    """Title and headings, as the default text has them; either field can be chosen."""
    from ir_datasets.datasets.car import CarQuery

    section = CarQuery("enwiki:Birch/Bark/Uses", "Birch Bark Uses", "Birch", ("Bark", "Uses"))
    tiny = ir_datasets.registry._registered["birchbark-tiny"]
    tiny.queries_iter = lambda: iter([section])
    assert read_queries(name) == [Query(section.query_id, "Birch Bark Uses")]
    assert read_queries(name, ("headings",)) == [Query(section.query_id, "Bark Uses")]
    assert read_queries(name, ("title", "headings"))[0].text == "Birch Bark Uses"


def test_settings_of_files_are_refused(name: Path) -> None:
    """They have no effect; the format is known without one."""
    assert collection_format(str(name)) == "ir_datasets"
    with pytest.raises(InputError, match=r"has a format of its own.*found jsonl"):
        list(read_collection(name, format_name="jsonl"))
    with pytest.raises(InputError, match="have no effect here"):
        list(read_collection(name, Intake(include=("*.txt",))))


def test_an_unknown_id() -> None:
    """The error says that ir_datasets does not have it."""
    with pytest.raises(InputError, match="ir_datasets has no such data set"):
        list(read_collection("ir_datasets:nothing/here", Intake()))
