"""Does the service answer as the library does, and refuse invalid requests?"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from served import client, index_directory

from birchbark import defaults
from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.load_rankers import with_score_caches
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.snapshot import LastSnapshot, Snapshot
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Document, Float32s, Ids
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision, fastest_precision
from birchbark.segment.sentences import sentences
from birchbark.serve.app import application
from birchbark.serve.limits import MAX_HITS, MAX_ID_CHARACTERS, MAX_QUERY_CHARACTERS, Limits
from birchbark.serve.service import Service
from conftest import GivenModels, WordScorer, write_bert

__all__ = ["client", "index_directory"]
QUERY = "birch river iron"


class _Slow(WordScorer):
    """Takes a fifth of a second for each batch."""

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        time.sleep(0.2)
        return super().score(query, token_ids)


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["doc_id"] for hit in answer["hits"]]


def events(text: str) -> list[tuple[str, Any]]:
    """Return kind and data of each server-sent event."""
    parsed = []
    for block in text.strip().replace("\r\n", "\n").split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "event" in lines:
            parsed.append((lines["event"], json.loads(lines["data"])))
    return parsed


def test_the_index_is_opened_in_threads(
    index_directory: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All other requests would wait while the event loop opens it, and perhaps loads a model."""
    get, in_loop = LastSnapshot.get, list[bool]()

    def watch(last: LastSnapshot) -> Snapshot:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            in_loop.append(False)
        else:
            in_loop.append(True)
        return get(last)

    service = client()
    monkeypatch.setattr(LastSnapshot, "get", watch)
    paths = ("/search?q=birch", "/search?q=birch&by=embedding", "/facets?query=birch")
    for path in (*paths, "/spelling?query=birch", "/documents/canoe?query=birch", "/about"):
        assert service.get(path).status_code == 200
    assert service.post("/search/stream", json={"query": "birch"}).status_code == 200
    assert in_loop
    assert not any(in_loop)


def test_hits_are_those_of_the_library(index_directory: Path, client: Any) -> None:
    """Scores, their parts, evidence with its context, and counts agree."""
    answer = client().post("/search", json={"query": QUERY}).json()
    expected = search(IndexEngine(Index(index_directory)), QUERY, Ranker(WordScorer()))
    assert ids(answer) == [hit.document.doc_id for hit in expected.hits]
    assert answer["exact"]
    assert (answer["candidates"], answer["scored"]) == (4, expected.stats.scored)
    for hit, expected_hit in zip(answer["hits"], expected.hits, strict=True):
        assert hit["score"] == expected_hit.score
        assert hit["first_stage"] + hit["embedding"] + hit["evidence"] == pytest.approx(
            expected_hit.score
        )
        for shown, evidence in zip(hit["segments"], expected_hit.segments, strict=True):
            assert (shown["score"], shown["weight"]) == (evidence.score, evidence.weight)
            contents = expected_hit.document.contents
            own = contents[shown["start"] : shown["end"]]  # after the title
            assert shown["text"] in (own, f"{expected_hit.document.title}\n{own}")
            assert shown["before"] + own + shown["after"] in contents
    assert answer["timings_ms"]["first_stage"] <= answer["timings_ms"]["total"]


def test_options_of_a_request(index_directory: Path, client: Any) -> None:
    """Number of hits, depth, weights, filters and ranker can be chosen."""
    service = client()
    chosen = {"query": QUERY, "top": 2, "depth": 3, "first_stage_weight": 0.9, "weights": [2]}
    answer = service.post("/search", json=chosen).json()
    ranker = Ranker(
        WordScorer(), aggregation=Top((2.0,)), interpolation=Interpolation(0.9), depth=3
    )
    expected = search(IndexEngine(Index(index_directory)), QUERY, ranker, 2)
    assert ids(answer) == [hit.document.doc_id for hit in expected.hits]
    assert answer["candidates"] == 3
    only = service.post("/search", json={"query": QUERY, "filters": {"kind": "water"}}).json()
    assert set(ids(only)) == {"canoe", "bridge"}
    first = service.post("/search", json={"query": QUERY, "by": "first_stage"}).json()
    bm25 = search(IndexEngine(Index(index_directory), FirstStage()), QUERY, ())
    assert ids(first) == [hit.document.doc_id for hit in bm25.hits]
    assert (first["exact"], first["scored"]) == (True, 0)
    near = service.post("/search", json={"query": QUERY, "by": "embedding"}).json()
    assert near["exact"]
    assert all(hit["first_stage"] == 0 for hit in near["hits"])


@pytest.mark.parametrize(
    ("request_json", "message"),
    [
        ({}, "query: Field required"),
        ({"query": ""}, "query: String should have at least 1 character"),
        ({"query": "x" * (MAX_QUERY_CHARACTERS + 1)}, "query: String should have at most"),
        ({"query": "a", "tpo": 3}, "tpo: Extra inputs are not permitted"),
        ({"query": "a", "top": 0}, "top: "),
        ({"query": "a", "top": MAX_HITS + 1}, "top: "),
        ({"query": "a", "first_stage_weight": 1.5}, "first_stage_weight: "),
        ({"query": "a", "weights": []}, "weights: "),
        ({"query": "a", "weights": [1, -0.1]}, "weights"),
        ({"query": "a", "budget_ms": 0}, "budget_ms: "),
        ({"query": "a", "by": "magic"}, "by: "),
        ({"query": "a", "filters": {"colour": "red"}}, "no field 'colour' to filter by"),
        ({"query": "a", "by": "first_stage", "depth": 3}, "depth requires BERT"),
        ({"query": "a", "by": "embedding", "first_stage_weight": 0}, "first_stage_weight requires"),
        ({"query": "birch " * 300}, "query is too long for the model"),
        ({"query": "-birch"}, "the query has nothing to search for"),
    ],
)
def test_invalid_requests_get_an_explanation(
    client: Any, request_json: dict[str, Any], message: str
) -> None:
    """The message names the fault and contains no file path and no option of the shell."""
    service = client()
    if message.startswith("query is too long"):
        service = client(bert=True)
    answer = service.post("/search", json=request_json)
    assert answer.status_code == 422
    assert message in answer.json()["message"]
    assert "/tmp" not in answer.text
    assert "--" not in answer.text
    assert service.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"query": "\\ud800"}', b'{"query": NaN}',
     b'{"query": "a", "weights": [NaN]}', b'{"query": "a", "first_stage_weight": Infinity}',
     b'{"\\ud800": 1}', b"[" * 100_000, b'{"query": "a", "top": 1e400}',
     b'{"query": "a", "top": ' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_malformed_bodies_are_refused(client: Any, body: bytes) -> None:
    """Broken JSON, lone surrogates, NaN, huge numbers and deep nesting get 400 or 422."""
    answer = client().post("/search", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["message"]


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        ("/search", '{"query":', "the body is not JSON, at character 9: Expecting value"),
        ("/embed", '{"inputs": [1]}', "inputs: Input should be a valid string; inputs.0: Input"),
        ("/v1/rerank", '{"query": "q", "documents": ["a", {"title": "b"}]}',
         "documents: document 1 has no text under the key text"),
        ("/documents", '{"documents": [{"id": 7, "text": "a"}, {"id": "7", "text": "b"}]}',
         "a second document with the id 7"),
        ("/documents", '{"documents": [{"id": "a", "text": "a"}, {"text": "b"}]}',
         "document 2 of 2: no id: expected a field named id or _id"),
        ("/documents", '{"documents": [{"id": "a", "text": "a"}, {"id": "b", "text": "\\ud800"}]}',
         "document 'b': text contains a lone surrogate"),
        ("/documents", '{"documents": [{"id": "a", "text": "a", "kind": ["land", "water"]}]}',
         "document 'a', field 'kind': a field to filter by has a list: expected one value per"),
    ],
)  # fmt: skip
def test_faults_are_told_in_plain_words(client: Any, route: str, body: str, message: str) -> None:
    """The place is named, without types of the library that checks it."""
    head = {"content-type": "application/json"}
    answer = client(writable=True).post(route, content=body, headers=head)
    assert answer.status_code == 422
    assert answer.json()["message"].startswith(message)


@pytest.mark.parametrize("route", ["/search", "/attention", "/documents", "/rerank", "/v1/rerank"])
def test_thousands_of_fields_are_one_error(client: Any, route: str) -> None:
    """An error for each would hold up all other requests for seconds."""
    service = client(writable=True)
    many = {str(number): 0 for number in range(1_001)}
    for body in (many, {"filters": many}, {"documents": [many]}):
        answer = service.post(route, json=body)
        assert (answer.status_code, answer.json()["message"]) == (422, "body: over 1,000 fields")


def test_queries_without_terms_have_no_hits(client: Any) -> None:
    """A query of stop words and punctuation only is no error."""
    for query in ("the", "?!", " ", "zebra", "\x00", "<script>"):
        answer = client().post("/search", json={"query": query})
        assert answer.status_code == 200
        assert (answer.json()["hits"], answer.json()["exact"]) == ([], True)


def test_a_tiny_budget_gives_first_stage_results(client: Any) -> None:
    """The answer is not exact, and no hit counts as scored."""
    service = client()
    answer = service.post("/search", json={"query": QUERY, "budget_ms": 0.001}).json()
    first = service.post("/search", json={"query": QUERY, "by": "first_stage"}).json()
    assert ids(answer) == ids(first)
    assert not answer["exact"]
    assert not any(hit["scored"] for hit in answer["hits"])


def test_a_stream_starts_with_the_first_stage(client: Any) -> None:
    """Better answers follow; the last equals that of /search."""
    # Slow, so that the first answer is sent before the next one.
    service: TestClient = client(Ranker(_Slow()))
    received = events(service.post("/search/stream", json={"query": QUERY}).text)
    assert [kind for kind, _ in received][-1] == "done"
    answers = [data for kind, data in received if kind == "answer"]
    assert answers[0]["scored"] == 0
    assert not answers[0]["exact"]
    first = service.post("/search", json={"query": QUERY, "by": "first_stage"}).json()
    assert ids(answers[0]) == ids(first)
    last = service.post("/search", json={"query": QUERY}).json()
    assert answers[-1]["hits"] == last["hits"]
    assert answers[-1]["exact"]
    wrong = {"query": QUERY, "filters": {"colour": "red"}}
    (event,) = events(service.post("/search/stream", json=wrong).text)
    message = "no field 'colour' to filter by: expected one of kind"
    assert event == ("error", {"message": message, "status": 422})


def test_documents_with_segment_scores(client: Any) -> None:
    """Segments are in document order; ids may be paths; unknown ids get 404."""
    service = client()
    plain = service.get("/documents/canoe").json()
    assert plain["fields"]["text"] == "A canoe of birch bark. It rides the river."
    assert plain["segments"] is None
    tinted = service.get("/documents/canoe", params={"query": "birch"}).json()
    assert [segment["text"] for segment in tinted["segments"]] == [
        "Birch canoe",
        "A canoe of birch bark.",
        "It rides the river.",
    ]
    scores = [segment["score"] for segment in tinted["segments"]]
    assert scores[2] < min(scores[:2])
    assert service.get("/documents/woods/forest.txt").json()["title"] == "Forest"
    for name in ("nobody", "../index/manifest.json", "%2e%2e/manifest.json", "a" * 20_000, "\x00"):
        answer = service.get(f"/documents/{name}" if name != "\x00" else "/documents/%00")
        assert answer.status_code in (404, 422), name
        assert "manifest" not in answer.text


def test_documents_are_added_and_deleted(index_directory: Path, client: Any) -> None:
    """When answered, all changes are on disk or none; they require --writable."""
    closed = client()
    for answer in (
        closed.post("/documents", json={"documents": [{"id": "x", "text": "y"}]}),
        closed.delete("/documents/canoe"),
    ):
        assert answer.status_code == 403
        assert answer.json()["remedy"] == "birchbark serve --writable"
    service = client(writable=True)
    new = [{"id": "a/b", "title": "Zebra", "text": "A zebra."}, {"id": "bees", "text": "A bee."}]
    assert service.post("/documents", json={"documents": new}).json() == {
        "added": 1, "replaced": 1, "deleted": 0,
    }  # fmt: skip
    assert Index(index_directory).documents(["a/b"])[0].title == "Zebra"
    assert ids(service.post("/search", json={"query": "zebra"}).json()) == ["a/b"]
    assert service.delete("/documents/a/b").json()["deleted"] == 1
    assert service.delete("/documents/a/b").status_code == 404
    assert ids(service.post("/search", json={"query": "zebra"}).json()) == []
    before = len(Index(index_directory))
    for bad in (
        [{"id": "ok", "text": "fine"}, {"text": "no id"}],
        [{"id": "ok", "text": "fine"}, {"id": " ", "text": "empty id"}],
        [{"id": "ok", "text": "fine"}, {"id": "half"}],
        [{"id": "x" * (MAX_ID_CHARACTERS + 1), "text": "long id"}],
        [{"id": "ok", "text": "fine"}, {"id": "ok", "text": "fine"}],
        [],
    ):
        assert service.post("/documents", json={"documents": bad}).status_code == 422
    half = b'{"documents": [{"id": "s", "text": "\\ud800"}]}'
    head = {"content-type": "application/json"}
    assert service.post("/documents", content=half, headers=head).status_code == 422
    assert len(Index(index_directory)) == before


def test_a_document_tells_the_query_that_was_read(client: Any) -> None:
    """It has no operators, unless the query is taken literally."""
    service = client()
    for query, literal, read in (
        ('birch -iron kind:water "birch bark"', False, "birch birch bark"),
        ("birch -iron", True, "birch -iron"),
    ):
        given = {"query": query, "literal": literal}
        answer = service.get("/documents/canoe", params=given).json()
        assert answer["read_query"] == read
    assert service.get("/documents/canoe").json()["read_query"] is None


def test_attention(client: Any) -> None:
    """The answer has a share for each layer, head and token."""
    ask = {"query": "bees", "text": "Bees dance."}
    assert client().post("/attention", json=ask).status_code == 422
    service = client(bert=True)
    attention = service.post("/attention", json=ask).json()
    assert attention["tokens"] == "[CLS] bee ##s [SEP] bee ##s dance . [SEP]".split()
    assert len(attention["layers"]) == 2
    long = service.post("/attention", json={"query": "bees", "text": "bees " * 100})
    assert long.status_code == 422
    assert "do not fit into one input" in long.json()["message"]


def test_hits_for_spreadsheets_and_notes(client: Any) -> None:
    """The header Accept chooses the form, of both methods; a browser's gets JSON."""
    service = client()
    hits = service.post("/search", json={"query": QUERY}).json()["hits"]
    for kind, begins in (("text/csv", "rank,doc_id,"), ("text/markdown", f"## {QUERY}\n\n1. **")):
        for answer in (
            service.post("/search", json={"query": QUERY}, headers={"accept": kind}),
            service.get("/search", params={"q": QUERY}, headers={"accept": kind}),
        ):
            assert answer.headers["content-type"].startswith(kind)
            assert answer.headers["x-exact"] == "true"
            assert answer.text.startswith(begins)
            assert all(hit["doc_id"] in answer.text for hit in hits)
    for accepted, kind in (
        ("text/html,application/xhtml+xml,*/*;q=0.8", "application/json"),  # a browser's
        ("application/json, text/csv;q=0.1", "application/json"),
        ("text/csv;q=0", "application/json"),
        ("application/json;q=0.5, Text/Markdown; q=0.9, text/csv; q=0.7", "text/markdown"),
        ("text/csv;q=0.1;header=present", "text/csv"),
        ("*/*, text/csv;q=0.5", "application/json"),
        ("application/*, text/csv;q=0.1", "application/json"),
        ("text/csv, */*;q=0.1", "text/csv"),
        ("application/json;q=0.1, */*, text/csv;q=0.5", "text/csv"),  # the exact name decides
    ):
        answer = service.get("/search", params={"q": QUERY}, headers={"accept": accepted})
        assert answer.headers["content-type"].startswith(kind)
        assert kind != "application/json" or answer.json()["hits"] == hits


def test_a_damaged_document_leaves_the_page(index_directory: Path, client: Any) -> None:
    """The page has no examples then; what reads the document says so."""
    (blocks,) = index_directory.glob("part-*/texts.blocks")
    blocks.write_bytes(bytes(blocks.stat().st_size))
    service = client()
    about = service.get("/about")
    assert (about.status_code, about.json()["examples"]) == (200, [])
    answer = service.get("/documents/canoe")
    assert answer.status_code == 503
    assert answer.json()["what"].startswith("block 0 is damaged")


def test_metrics(client: Any) -> None:
    """Requests are counted by route and status, without ids or queries."""
    service = client()
    service.post("/search", json={"query": QUERY})
    service.post("/search", json={"query": QUERY, "budget_ms": 0.001})
    service.get("/documents/canoe")
    service.get("/nowhere")
    text = service.get("/metrics").text
    assert 'birchbark_requests_total{route="/search",status="200"} 2.0' in text
    assert 'birchbark_requests_total{route="/documents/{doc_id:path}",status="200"} 1.0' in text
    assert 'birchbark_searches_total{exact="true"} 1.0' in text
    assert 'birchbark_searches_total{exact="false"} 1.0' in text
    assert "canoe" not in text


def test_other_weights_score_nothing_again(client: Any) -> None:
    """Cached scores are used with any weights."""
    service = client()

    def scored() -> str:
        (line,) = re.findall(
            r"^birchbark_pairs_scored_total .+$", service.get("/metrics").text, re.M
        )
        return line

    def moved(**weights: Any) -> dict[str, Any]:
        return service.post("/search", json={"query": QUERY, **weights}).json()

    first, before = moved(), scored()
    assert float(before.split()[1]) > first["pairs"]  # sentences of the best passages, too
    for weights in (
        {"first_stage_weight": 0.9},
        {"weights": [0.2, 1, 0.5]},
        {"first_stage_weight": 0},
    ):
        assert [hit["score"] for hit in moved(**weights)["hits"]] != [
            h["score"] for h in first["hits"]
        ]
        assert scored() == before
    moved(query="iron")
    assert scored() != before


def test_stored_scores_are_not_computed_again(index_directory: Path, tmp_path: Path) -> None:
    """A second searcher with the same score store scores no pair."""
    for expected in (True, False):
        with with_score_caches([Ranker(WordScorer())], tmp_path / "scores") as kept:
            searcher = Searcher(index_directory, kept.rankers)
            assert searcher.search(QUERY).stats.pairs
            assert bool(searcher.pairs_scored) is expected


def test_models_are_loaded_once_by_the_given_function(index_directory: Path) -> None:
    """This includes the embedding of the comparison, at its first use."""
    opened = []

    def load(model: str, precision: Precision) -> WordScorer:
        opened.append((model, precision))
        return WordScorer()

    service = Service(Searcher(index_directory, "first", loaded=GivenModels(load)), "second")
    with TestClient(application(service)) as test_client:
        for by in ("bert", "embedding", "embedding"):
            answer = test_client.post("/search", json={"query": QUERY, "by": by})
            assert answer.status_code == 200
    embedding = [(defaults.EMBEDDING, p) for p in {Precision.FP32, fastest_precision()}]
    embedding.append((defaults.STATIC_EMBEDDING, Precision.FP32))
    assert sorted(opened, key=str) == sorted(
        [("first", Precision.FP32), *embedding, ("second", Precision.FP32)], key=str
    )


def test_openapi_describes_every_route(client: Any) -> None:
    """/docs describes them too, and loads scripts from no other server."""
    service = client()
    described = service.get("/openapi.json").json()
    assert set(described["paths"]) == {
        "/search", "/search/stream", "/facets", "/spelling", "/files/{doc_id}",
        "/documents", "/documents/{doc_id}", "/attention",
        "/healthz", "/readyz", "/metrics", "/v1/rerank", "/v2/rerank", "/rerank",
        "/v1/embeddings", "/embed", "/info",
    }  # fmt: skip
    assert service.get("/readyz").json() == {"status": "ready", "failing": []}
    page = service.get("/docs").text
    assert re.findall(r'(?:src|href)="(.)', page) == ["/"] * page.count('="/')


def test_without_a_model_the_first_stage_ranks(client: Any) -> None:
    """Requests that need a model get 422."""
    service = client(ranker=())
    answer = service.post("/search", json={"query": QUERY}).json()
    assert answer["exact"]
    assert len(answer["hits"]) == 4
    assert service.get("/about").json()["model"] is None
    for answer in (
        service.get("/documents/canoe", params={"query": "birch"}),
        service.post("/v2/rerank", json={"query": "a", "documents": ["b"]}),
        service.post("/search", json={"query": "a", "by": "embedding"}),
    ):
        assert answer.status_code == 422
    assert "by: embedding requires a model" in answer.text


def test_a_path_is_whole(index_directory: Path, client: Any) -> None:
    """It names a file; other fields that tell where a document is from may be cut."""
    path = "/".join(["a folder with a long name"] * 20) + "/bark.txt"
    with IndexWriter(index_directory) as writer:
        writer.add(Document("deep", {"text": "Xylem.", "path": path, "journal": "J" * 400}))
    service = client()
    (hit,) = service.post("/search", json={"query": "xylem", "top": 1}).json()["hits"]
    assert hit["source"] == {"path": path, "journal": "J" * 300}
    assert (
        path in service.get("/search", params={"q": "xylem"}, headers={"accept": "text/csv"}).text
    )


def test_invalid_limits_are_refused() -> None:
    """Values of 0 and a default budget above the maximum raise InputError."""
    from birchbark.errors import InputError

    for wrong in (
        {"budget": 0},
        {"budget": 60},
        {"max_concurrent": 0},
        {"max_requests": 0},
        {"max_request_bytes": 0},
    ):
        with pytest.raises(InputError):
            Limits(**wrong)  # type: ignore[arg-type]


def test_a_request_cannot_override_the_filter_of_the_service(index_directory: Path) -> None:
    """A request can narrow the filter but not see other documents."""
    only = FirstStage(filters={"kind": "water"})
    service = Service(Searcher(index_directory, Ranker(WordScorer()), only))
    with TestClient(application(service)) as test_client:
        for more in ({}, {"filters": {"kind": "water"}}):
            answer = test_client.post("/search", json={"query": QUERY, **more}).json()
            assert set(ids(answer)) == {"canoe", "bridge"}
        other = test_client.post("/search", json={"query": QUERY, "filters": {"kind": "land"}})
        assert (other.status_code, other.json()["hits"]) == (200, [])


def test_a_deleted_index_gets_503_without_its_path(index_directory: Path, client: Any) -> None:
    """The service stays healthy, but is not ready."""
    service = client()
    shutil.rmtree(index_directory)
    answer = service.post("/search", json={"query": QUERY})
    assert answer.status_code == 503
    assert str(index_directory.parent) not in answer.text
    assert service.get("/readyz").status_code == 503
    assert service.get("/healthz").status_code == 200


def test_a_search_in_the_url(client: Any) -> None:
    """It answers as POST does, and names a wrong parameter."""
    service = client()
    posted = service.post(
        "/search", json={"query": QUERY, "top": 2, "filters": {"kind": "water"}, "by": "embedding"}
    ).json()
    got = service.get(f"/search?q={QUERY}&top=2&filter=kind=water&by=embedding").json()
    assert (ids(got), got["query"]) == (ids(posted), QUERY)
    for url, message in [
        ("/search", "q: Field required"),
        ("/search?q=a&tpo=1", "unknown parameter 'tpo' in the URL: expected q or top or by"),
        ("/search?q=a&filter=kind", "not a filter"),
    ]:
        refused = service.get(url)
        assert (refused.status_code, message in refused.json()["message"]) == (422, True)


def test_facets_and_spelling(client: Any) -> None:
    service = client()
    facets = service.get(f"/facets?query={QUERY}").json()["facets"]
    assert facets == [{"field": "kind", "values": [["land", 2], ["water", 2]], "others": 0}]
    narrowed = service.get(f"/facets?query={QUERY}&filter=kind=water").json()
    assert narrowed == {"facets": facets}  # what else could be chosen
    assert service.get("/facets?query=a&filter=colour=red").status_code == 422
    assert service.get("/spelling?query=brich rivver").json() == {"correction": "birch river"}
    assert service.get("/spelling?query=birch").json() == {"correction": None}


def test_the_nearest_by_vectors_need_no_common_word(index_directory: Path, tmp_path: Path) -> None:
    """Without vectors the request is refused, with the remedy."""
    directory = str(write_bert(tmp_path / "bert"))
    searcher = Searcher(index_directory, Ranker(WordScorer()))
    with TestClient(application(Service(searcher, directory))) as service:
        request = {"query": "zzzz", "by": "nearest"}
        refused = service.post("/search", json=request)
        assert refused.status_code == 422
        assert "birchbark index attach" in refused.json()["remedy"]
        with IndexWriter(index_directory) as writer:
            precompute_vectors(load_scorer(directory), sentences, directory).attach(writer)
        answer = service.post("/search", json=request).json()
        assert len(answer["hits"]) == 5
        assert answer["exact"]
        scores = [hit["score"] for hit in answer["hits"]]
        assert scores == sorted(scores, reverse=True)


def test_long_documents_are_read_where_they_have_the_words(tmp_path: Path) -> None:
    """At most 256 segments are read; the answer tells of how many."""
    text = "Moss grows. " * 400 + "A birch by the river. " + "Moss grows. " * 400
    build_index([Document("long", {"text": text})], tmp_path / "index")
    searcher = Searcher(tmp_path / "index", Ranker(WordScorer(), sentences))
    with TestClient(application(Service(searcher))) as service:
        answer = service.get("/documents/long?query=birch river").json()
    assert len(answer["segments"]) == 256
    assert answer["segment_count"] == 801
    best = max(answer["segments"], key=lambda segment: segment["score"])
    assert best["text"] == "A birch by the river."


def test_parameters_of_urls_are_checked(client: Any) -> None:
    """One that would have no effect is refused, and so is a second value that would win."""
    service = client()
    for method, url, message in [
        ("POST", "/search?filter=kind=water", "unknown parameter 'filter' in the URL: expected no"),
        ("GET", f"/facets?query={QUERY}&filters=kind=water", "unknown parameter 'filters'"),
        ("GET", "/search?q=birch&q=bees", "the parameter 'q' is given 2 times: expected once"),
        ("GET", "/search?q=birch&top=3&top=1", "the parameter 'top' is given 2 times"),
        ("GET", "/documents/bees?q=honey", "unknown parameter 'q'"),
        ("DELETE", "/documents/bees?dry_run=true", "unknown parameter 'dry_run'"),
    ]:
        body = {"query": "birch"} if method == "POST" else None
        refused = service.request(method, url, json=body)
        assert (refused.status_code, refused.json()["message"][: len(message)]) == (422, message)
    url = "/search?q=birch&filter=kind=water&filter=kind=water"
    assert service.get(url).status_code == 200
    assert service.get("/?q=birch").status_code == 200  # the page


def test_a_stream_tells_of_every_error(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the status that /search has; its head has been sent with 200."""
    service = client()
    for error, status in ((OSError(5, "Input/output error"), 503), (ValueError("x"), 500)):

        def fail(*arguments: object, error: Exception = error, **options: object) -> None:
            raise error

        monkeypatch.setattr(Searcher, "search", fail)
        (event,) = events(service.post("/search/stream", json={"query": QUERY}).text)
        assert (event[0], event[1]["status"]) == ("error", status)
        assert "x" not in event[1]["message"].split()


def test_options_of_ranking_need_a_model(client: Any, index_directory: Path) -> None:
    """A service without one refuses them."""
    with TestClient(application(Service(Searcher(index_directory, ())))) as bare:
        answer = bare.post("/search", json={"query": QUERY, "depth": 3})
    assert answer.status_code == 422
    assert "depth requires BERT: found a service without a model" in answer.json()["message"]
