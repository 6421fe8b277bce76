"""Are hits shown in the order of a field, in the shell and over HTTP?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from served import Client, client, index_directory  # noqa: F401  (fixtures)

from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.pipeline.answers.answer import Answer, Hit, SearchStats
from birchbark.pipeline.answers.sort_hits import sorted_by_field
from birchbark.records import Document

VALUES = ["9", "10", "", "b", "9", "a", "-1.5"]


def answer_of(values: list[str]) -> Answer:
    fields = ({"year": value} if value else {} for value in values)
    documents = [Document(f"d{n}", {"text": "x"} | extra) for n, extra in enumerate(fields)]
    return Answer(tuple(Hit(d, 1.0, 1.0, 0.0, ()) for d in documents), SearchStats())


def order_of(answer: Answer) -> list[int]:
    return [int(hit.document.doc_id[1:]) for hit in answer.hits]


def test_numbers_texts_and_hits_without_a_value() -> None:
    """Equal values stay as they are ranked; hits without a value are last in both directions."""
    answer = answer_of(VALUES)
    assert order_of(sorted_by_field(answer, "year")) == [6, 0, 4, 1, 5, 3, 2]
    assert order_of(sorted_by_field(answer, "-year")) == [1, 0, 4, 6, 3, 5, 2]
    assert order_of(answer_of(VALUES)) == list(range(7))
    with pytest.raises(InputError, match="no field to sort by: expected FIELD or -FIELD"):
        sorted_by_field(answer, "-")


def test_a_field_that_no_hit_has_is_refused() -> None:
    """The error lists the fields of the hits; an interim answer, to be replaced, stays as it is."""
    answer = answer_of(VALUES)
    with pytest.raises(
        InputError, match="no hit has the field 'yaer' to sort by: expected text or"
    ):
        sorted_by_field(answer, "-yaer")
    many = replace(answer.hits[0].document, fields={f"f{n:03}": "1" for n in range(900)})
    with pytest.raises(InputError, match="or f019 or another"):
        sorted_by_field(replace(answer, hits=(replace(answer.hits[0], document=many),)), "yaer")
    assert sorted_by_field(answer, "yaer", complete=False) == answer
    assert sorted_by_field(answer_of([]), "yaer") == answer_of([])
    assert sorted_by_field(answer, "-yaer", ["yaer"]) == answer  # one that documents may have


def test_the_shell_sorts(tmp_path: Path) -> None:
    """It sorts with and without BERT; the hits are those of a search without --sort."""
    records = [{"id": str(n), "text": "bees " * (3 - n), "year": 2000 + n} for n in range(3)]
    build_index(records, tmp_path / "i")
    found = {}
    for order in (None, "year", "-year"):
        for only in ([], ["--model", "none"]):
            sort = ["--sort", order] if order else []
            arguments = ["search", str(tmp_path / "i"), "bees", "--json", *sort, *only]
            lines = CliRunner().invoke(group, arguments, catch_exceptions=False).stdout.splitlines()
            found[order, bool(only)] = [json.loads(line)["doc_id"] for line in lines]
    assert found["year", True] == found["year", False] == ["0", "1", "2"]
    assert found["-year", True] == found["-year", False] == ["2", "1", "0"]
    assert sorted(found[None, True]) == ["0", "1", "2"]


def test_http_sorts(client: Client) -> None:  # noqa: F811
    """Each answer of a stream is sorted, too."""
    service = client()
    best = service.get("/search", params={"q": "birch canoe river"}).json()["hits"]
    hits = service.get("/search", params={"q": "birch canoe river", "sort": "-kind"}).json()["hits"]
    assert {hit["doc_id"] for hit in hits} == {hit["doc_id"] for hit in best}
    assert [hit["doc_id"] for hit in hits] != [hit["doc_id"] for hit in best]
    body = {"query": "birch canoe river", "sort": "-kind"}
    text = service.post("/search/stream", json=body).text
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith('data: {"q')]
    assert events
    for event in events:
        kinds = [hit["doc_id"] in ("canoe", "bridge") for hit in event["hits"]]
        assert kinds == sorted(kinds, reverse=True)
    assert service.post("/search", json={"query": "x", "sort": ""}).status_code == 422
    refused = service.get("/search", params={"q": "birch", "sort": "kinds"})
    assert (refused.status_code, refused.json()["what"]) == (
        422,
        "no hit has the field 'kinds' to sort by",
    )
