"""Do shell, HTTP and Python give the same answers to queries as people type them?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Document
from birchbark.retrieve.first_stage import FirstStage
from birchbark.serve.app import application
from birchbark.serve.service import Service

TEXTS = {
    "refund.txt": ("Refunds", "Can I get my money back? Yes, within 30 days.", "2024-03-09"),
    "parcel.pdf": ("", "Track a parcel. The delivery note is in the box.", "2024-05-01"),
    "gift.md": ("Gift cards", "Gift cards cannot be paid out. Valid for years.", "2023-11-30"),
    "state.md": ("", "A state-of-the-art scanner reads the delivery\nnote.", "2024-05-02"),
    "flags.c": ("", "gcc -Wall -O2 shows warnings. C++ has templates.", "2024-06-01"),
    "hours.txt": ("Opening hours", "The shop opens at nine; it's closed on Sundays.", "2024-01-02"),
}  # fmt: skip
DOCUMENTS = [
    Document(name, {"title": a, "text": b, "type": name.split(".")[1], "modified": modified})
    for name, (a, b, modified) in TEXTS.items()
]
TYPED = {
    "when does the shop open?": {"hours.txt"},
    '"delivery note"': {"parcel.pdf", "state.md"},
    "“delivery note” parcel": {"parcel.pdf", "state.md"},
    '"state of the art" scanner': {"state.md"},
    "delivery -parcel": {"state.md"},
    'note -"delivery note"': set(),
    "note -delivery": set(),
    "cards type:md": {"gift.md"},
    "Type:pdf note": {"parcel.pdf"},
    "delivery -type:pdf": {"state.md"},
    "note before:2024-05-02": {"parcel.pdf"},
    "delivery note after:2024-05-02": {"state.md"},
    "delivery after:2024-05 before:2024-06": {"parcel.pdf", "state.md"},
    "delivery before:2024": set(),
    "C++ templates": {"flags.c"},
    "gcc -Wall": set(),
    "http://shop.example/hours": {"hours.txt"},
    "scanner - parcel": {"parcel.pdf", "state.md"},
    'size 5" box': {"parcel.pdf"},
    'the "opening hours': {"hours.txt"},
    '"gift cards gift cards" refund': {"gift.md"},
}


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    folder = tmp_path_factory.mktemp("syntax") / "i"
    build_index(DOCUMENTS, folder, Schema(keywords=("type", "modified")))
    return Searcher(folder, ())


@pytest.fixture(scope="module")
def client(searcher: Searcher) -> Iterator[TestClient]:
    with TestClient(application(Service(searcher))) as client:
        yield client


def by_shell(searcher: Searcher, query: str, *more: str) -> list[str]:
    given = ("search", str(searcher.directory), "--model", "none", "--json", *more, "--", query)
    result = CliRunner().invoke(group, given, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line)["doc_id"] for line in result.stdout.splitlines()]


@pytest.mark.parametrize("query", TYPED)
def test_equal_answers(searcher: Searcher, client: TestClient, query: str) -> None:
    """Each way to search finds the same documents in the same order."""
    found = [hit.document.doc_id for hit in searcher.search(query).hits]
    assert set(found) == TYPED[query]
    assert by_shell(searcher, query) == found
    for response in (
        client.post("/search", json={"query": query}),
        client.get("/search", params={"q": query}),
    ):
        assert [hit["doc_id"] for hit in response.json()["hits"]] == found


def test_literal_queries(searcher: Searcher, client: TestClient) -> None:
    """A minus and quotation marks are text in a literal query, whichever interface gets it."""
    query = "gcc -Wall"
    literal = searcher.parse(query, literal=True)
    assert [hit.document.doc_id for hit in searcher.search(literal).hits] == ["flags.c"]
    assert by_shell(searcher, query, "--literal") == ["flags.c"]
    answer = client.post("/search", json={"query": query, "literal": True}).json()
    assert [hit["doc_id"] for hit in answer["hits"]] == ["flags.c"]
    text = {"source": query, "kind": "text", "value": query, "field": ""}
    nothing = {"phrases": [], "excluded": [], "filters": []}
    assert answer["parsed"] == {"parts": [text], "words": query, **nothing}
    answer = client.get("/search", params={"q": query, "literal": "true"}).json()
    assert [hit["doc_id"] for hit in answer["hits"]] == ["flags.c"]


def test_response_tells_what_was_understood(client: TestClient) -> None:
    """The response has the words that rank, phrases, exclusions, filters and the query's parts."""
    query = 'scanner "delivery note" -parcel -"gift cards" type:md before:2025'
    answer = client.post("/search", json={"query": query}).json()
    assert answer["query"] == query
    parts = answer["parsed"].pop("parts")
    assert "".join(part["source"] for part in parts) == query
    assert [
        (part["kind"], part["value"], part["field"]) for part in parts if part["value"] != " "
    ] == [
        ("text", "scanner ", ""),
        ("phrase", "delivery note", ""),
        ("excluded", "parcel", ""),
        ("excluded", "gift cards", ""),
        ("filter", "md", "type"),
        ("filter", "..2024", "modified"),
    ]
    assert answer["parsed"] == {
        "words": "scanner delivery note",
        "phrases": ["delivery note"],
        "excluded": ["parcel", "gift cards"],
        "filters": [["type", "md"], ["modified", "..2024"]],
    }


def test_beside_a_search(client: TestClient) -> None:
    """Facets and spelling keep to the operators, too."""
    facets = client.get("/facets", params={"query": "delivery note shop -parcel"}).json()["facets"]
    assert facets == []
    get = client.get("/facets", params={"query": "-parcel", "literal": "true"})
    assert get.status_code == 200
    spelt = client.get("/spelling", params={"query": '"delivary note" -parcell'}).json()
    assert spelt == {"correction": '"delivery note" -parcell'}


def test_menus_narrow_the_filter_of_the_service(tmp_path: Path) -> None:
    """What is offered for a field that the service filters finds as many hits as it says."""
    folders = ["docs/a", "docs/a", "docs/b", "notes"]
    documents = [
        Document(
            str(n), {"text": f"Parcel {n}.", "path": f"{folder}/{n}", "modified": f"2024-0{n + 1}"}
        )
        for n, folder in enumerate(folders)
    ]
    build_index(documents, tmp_path / "index", Schema(keywords=("path", "modified")))
    only = FirstStage(filters={"path": "docs/*", "modified": "2024.."})
    service = Service(Searcher(tmp_path / "index", (), only))
    offered = [["docs/a/*", 2], ["docs/b/*", 1]]
    with TestClient(application(service)) as test_client:
        for chosen in ("", *(f"&filter=path={text}" for text, _ in offered)):
            facets = test_client.get(f"/facets?query=parcel{chosen}").json()["facets"]
            assert [facet["values"] for facet in facets] == [offered]
        for chosen, expected in (
            ("path=docs/a/*", {"0", "1"}),
            ("path=docs/b/*", {"2"}),
            ("modified=2024-02..", {"1", "2"}),  # since a day, as the menu of dates says it
        ):
            answer = test_client.get(f"/search?q=parcel&filter={chosen}").json()
            assert {hit["doc_id"] for hit in answer["hits"]} == expected


def test_nothing_to_search_for(searcher: Searcher, client: TestClient) -> None:
    """A query that only leaves documents out is refused with what to do instead."""
    response = client.post("/search", json={"query": "-parcel type:pdf"})
    assert response.status_code == 422
    assert response.json()["what"] == (
        "the query has nothing to search for: it only leaves documents out"
    )
    given = ("search", str(searcher.directory), "--model", "none", "--", "-parcel")
    assert isinstance(CliRunner().invoke(group, given).exception, InputError)


def test_help_explains_the_syntax(client: TestClient, tmp_path: Path) -> None:
    """--help and the description of the API show the operators."""
    shown = " ".join(CliRunner().invoke(group, ["search", "--help"]).stdout.split())
    described = json.dumps(client.get("/openapi.json").json())
    for text in (shown, described.replace('\\"', '"')):
        assert all(operator in text for operator in ('"exact phrase"', "-word", "before:2024-05"))
