"""Are the routes for clients of other services compatible with those services?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from served import client, index_directory

from birchbark.pipeline.rank_texts import rank
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.score.load_scorer import load_scorer
from birchbark.serve.admission import BusyError
from birchbark.serve.limits import Limits
from birchbark.serve.service import Service
from conftest import WordScorer, write_bert

__all__ = ["client", "index_directory"]
TEXTS = ["iron", "bees dance", "a birch", "the bees"]
EXPECTED = [(text.index, text.score) for text in rank("bees dance", TEXTS, WordScorer())]


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_cohere_and_jina(client: Any, path: str) -> None:
    """Texts, objects, top_n and returned texts are supported; other fields are ignored."""
    service = client()
    ask = {"model": "rerank-v3.5", "query": "bees dance", "documents": TEXTS}
    answer = service.post(path, json=ask).json()
    assert [(r["index"], r["relevance_score"]) for r in answer["results"]] == EXPECTED
    assert answer["id"]
    assert answer["usage"]["total_tokens"] == 9
    assert answer["meta"]["api_version"]["version"] == path[2]
    objects = [{"text": text, "id": n} for n, text in enumerate(TEXTS)]
    more = {"top_n": 2, "return_documents": True, "max_tokens_per_doc": 4096, "priority": 0}
    more |= {"rank_fields": ["text"], "max_chunks_per_doc": 10}
    two = service.post(path, json={**ask, "documents": objects, **more}).json()["results"]
    assert [r["index"] for r in two] == [index for index, _ in EXPECTED[:2]]
    assert two[0]["document"] == {"text": "bees dance"}
    assert service.post(path, json={**ask, "documents": []}).json()["results"] == []


def test_text_embeddings_inference(client: Any) -> None:
    """The answer is a list, best first, with texts on request."""
    service = client()
    ask = {"query": "bees dance", "texts": TEXTS}
    assert [(r["index"], r["score"]) for r in service.post("/rerank", json=ask).json()] == EXPECTED
    with_text = service.post("/rerank", json={**ask, "return_text": True, "truncate": True}).json()
    assert [r["text"] for r in with_text] == [TEXTS[index] for index, _ in EXPECTED]
    untruncated = service.post("/rerank", json={**ask, "truncate": None})
    assert "X-Truncated-Tokens" not in untruncated.headers
    assert [(r["index"], r["score"]) for r in untruncated.json()] == EXPECTED
    for ignored in ({"top_n": 1}, {"truncation_direction": "Left"}):
        assert service.post("/rerank", json={**ask, **ignored}).status_code == 422


def test_truncated_texts(client: Any) -> None:
    """Only the beginning of a text longer than an input is read; other tokens are counted."""
    service = client()
    texts = ["birch bark " * 4 + "bees dance now", "bees by the river"]  # an input has 8 words
    scores = {}
    for truncate in (True, False):
        ask = {"query": "bees dance", "texts": texts, "truncate": truncate, "return_text": True}
        answer = service.post("/rerank", json=ask)
        scores[truncate] = {r["text"]: r["score"] for r in answer.json()}
        assert answer.headers.get("X-Truncated-Tokens") == ("3" if truncate else None)
    for path in ("/v1/rerank", "/v2/rerank"):
        ask = {"query": "bees dance", "documents": texts, "max_tokens_per_doc": 9}
        answer = service.post(path, json=ask)
        assert {r["index"]: r["relevance_score"] for r in answer.json()["results"]} == {
            0: pytest.approx(1 / 3),  # two chunks, of which the first has half of the words
            1: 0.5,
        }
        assert answer.headers["X-Truncated-Tokens"] == "2"
    assert scores[True] == {texts[0]: 0.0, texts[1]: 0.5}
    assert scores[False] == {texts[0]: pytest.approx(2 / 3), texts[1]: 0.5}


def test_a_query_is_cut_before_texts_are(client: Any, tmp_path: Path) -> None:
    """What `query_tokens` leaves out takes no room from truncated texts, nor is it refused."""
    bert = load_scorer(write_bert(tmp_path / "tiny", labels=1, positions=32))
    service = client(Ranker(bert, query_tokens=4))
    answers = [
        service.post("/rerank", json={"query": query, "texts": ["bee " * 40], "truncate": True})
        for query in ("bee " * 4, "bee " * 40)
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    left_out = [answer.headers["X-Truncated-Tokens"] for answer in answers]
    assert left_out == [str(40 - bert.token_budget("bee " * 4))] * 2


def test_texts_are_not_cut_when_nobody_waits(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work ends before the next text, whether it is cut or counted."""
    left = []

    async def run(service: Service, work: Any) -> Any:
        def on_batch() -> None:
            left.append(1)
            if len(left) == 3:
                raise BusyError("the client has left")

        return work(9, on_batch)

    monkeypatch.setattr(Service, "run_scoring", run)
    ask = {"query": "bees", "documents": ["birch bark"] * 9, "max_tokens_per_doc": 1}
    assert client().post("/v1/rerank", json=ask).status_code == 503
    assert len(left) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": "a"},
        {"query": "", "documents": ["b"]},
        {"query": "a", "documents": "b"},
        {"query": "a", "documents": [1]},
        {"query": "a", "documents": [{"title": "b"}]},
        {"query": "a", "documents": [{"text": 1}]},
        {"query": "a", "documents": ["b"], "top_n": 0},
        {"query": "a", "documents": ["b"], "top_k": 1},
        {"query": "a", "documents": [{"text": "b", "title": "c"}], "rank_fields": ["title"]},
        {"query": "a", "documents": ["b"], "rank_fields": ["text"] * 2},
        {"query": "a", "documents": ["b"] * 1001},
        {"query": "a", "documents": [{"text": "b" * 200_001}]},
        {"query": "a", "documents": ["b" * 200_001]},
    ],
)
def test_invalid_requests_are_refused(client: Any, wrong: dict[str, Any]) -> None:
    """They get 422 before anything is scored."""
    answer = client().post("/v2/rerank", json=wrong)
    assert answer.status_code == 422
    assert answer.json()["message"]


def test_incomplete_scoring_gets_503(client: Any) -> None:
    """If the time does not suffice, no partial ranking is returned."""
    service = client(limits=Limits(budget=1e-6, max_time=1e-6))
    answer = service.post("/v2/rerank", json={"query": "bees", "documents": TEXTS})
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


@pytest.mark.parametrize(
    ("path", "key"),
    [("/rerank", "texts"), ("/v1/rerank", "documents"), ("/v2/rerank", "documents")],
)
def test_evidence_on_request(client: Any, path: str, key: str) -> None:
    """Sentences come with offsets in the text and with scores; only for what is returned."""
    texts = ["It is late. The bees dance. Iron rusts.", "a birch"]
    ask = {"query": "bees dance", key: texts, "return_evidence": True}
    ask |= {} if path == "/rerank" else {"top_n": 1}
    answer = client().post(path, json=ask).json()
    results = answer if path == "/rerank" else answer["results"]
    assert len(results) == (2 if path == "/rerank" else 1)
    best = results[0]["evidence"]
    assert best[0]["text"] == "The bees dance."
    assert [texts[0][x["start"] : x["end"]] for x in best] == [x["text"] for x in best]
    assert [x["score"] for x in best] == sorted((x["score"] for x in best), reverse=True)
    plain = client().post(path, json={**ask, "return_evidence": False}).json()
    assert "evidence" not in (plain if path == "/rerank" else plain["results"])[0]
