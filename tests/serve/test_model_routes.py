"""Are texts embedded as OpenAI's and TEI's clients expect, and as the model embeds them?"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from served import running, send

from birchbark.cli import group
from birchbark.index.build_index import build_index
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.score.load_scorer import load_scorer
from birchbark.serve.app import application
from birchbark.serve.limits import Limits
from birchbark.serve.service import Service
from conftest import DOCUMENTS, WordScorer, write_bert

TEXTS = ["bees dance", "a birch", "bees dance", "the river by the birch"]


@pytest.fixture
def embedding(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "embedding")


@pytest.fixture
def client(tmp_path: Path, embedding: Path) -> Iterator[TestClient]:
    """A service without documents, as --models-only makes it."""
    index = build_index(None, tmp_path / "index")
    service = Service(Searcher(index.directory, Ranker(WordScorer())), str(embedding), Limits())
    with TestClient(application(service, models_only=True)) as made:
        yield made


def vectors_of(embedding: Path, texts: list[str]) -> Any:
    scorer: Any = load_scorer(embedding)
    return scorer.embed(scorer.encode(texts))


def test_openai(client: TestClient, embedding: Path) -> None:
    """Texts come back in order, as numbers or in base64, with the tokens that were read."""
    answer = client.post("/v1/embeddings", json={"model": "m", "input": TEXTS}).json()
    expected = vectors_of(embedding, TEXTS)
    assert (answer["object"], answer["model"]) == ("list", embedding.name)
    assert [one["index"] for one in answer["data"]] == [0, 1, 2, 3]
    assert np.array_equal(np.float32([one["embedding"] for one in answer["data"]]), expected)
    tokens = sum(map(len, load_scorer(embedding).encode(TEXTS)))
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    asked = {"input": TEXTS[0], "encoding_format": "base64"}
    (packed,) = client.post("/v1/embeddings", json=asked).json()["data"]
    assert base64.b64decode(packed["embedding"]) == expected[0].astype("<f4").tobytes()


def test_fewer_dimensions(client: TestClient, embedding: Path) -> None:
    """The first numbers of each vector are kept and normalised; more than there are is refused."""
    size = vectors_of(embedding, TEXTS).shape[1]
    for path, key in (("/v1/embeddings", "input"), ("/embed", "inputs")):
        answer = client.post(path, json={key: TEXTS[:1], "dimensions": 3}).json()
        found = answer[0] if path == "/embed" else answer["data"][0]["embedding"]
        first = vectors_of(embedding, TEXTS[:1])[0, :3]
        assert found == pytest.approx((first / np.linalg.norm(first)).tolist(), abs=1e-6)
        refused = client.post(path, json={key: TEXTS[:1], "dimensions": size + 1})
        assert (refused.status_code, refused.json()["wanted"]) == (422, f"at most {size}")


def test_text_embeddings_inference(client: TestClient, embedding: Path) -> None:
    """One text or several, as texts or as queries."""
    scorer: Any = load_scorer(embedding)
    queries = np.stack([scorer.embed_query(text) for text in TEXTS])
    for name in ("query", "document", "passage", "corpus"):
        expected = queries if name == "query" else vectors_of(embedding, TEXTS)
        asked = {"inputs": TEXTS, "prompt_name": name, "truncate": None}
        found = client.post("/embed", json=asked).json()
        assert np.array_equal(np.float32(found), expected)
    assert len(client.post("/embed", json={"inputs": "a birch"}).json()) == 1
    assert client.post("/embed", json={"inputs": "a", "normalize": False}).status_code == 422
    for wrong in ([], [1, 2], [[1]], None):
        refused = client.post("/v1/embeddings", json={"input": wrong})
        assert refused.status_code == 422
        assert "expected a text, or a list of texts" in refused.json()["message"]
        of_tokens = "check_embedding_ctx_length=False" in refused.json()["message"]
        assert of_tokens == (wrong in ([1, 2], [[1]]))
    info = client.get("/info").json()
    assert "reranker" in info["model_type"]
    assert info["max_client_batch_size"] == 1_000


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", "float32"), ("int8", "int8"), (None, "float32")]
)
def test_info_names_the_model_and_its_precision(
    tmp_path: Path, embedding: Path, precision: str | None, dtype: str
) -> None:
    """The name is the one that answers have; without a ranker it is that of the embedding."""
    index = build_index(None, tmp_path / "index")
    bert = write_bert(tmp_path / "tiny", labels=1)
    rankers = [Ranker(load_scorer(bert, precision=precision))] if precision else ()
    service = Service(Searcher(index.directory, rankers), str(embedding))
    with TestClient(application(service, models_only=True)) as made:
        info = made.get("/info").json()
    assert (info["model_id"], info["model_dtype"]) == (
        "tiny" if precision else embedding.name,
        dtype,
    )


def test_long_texts_are_refused_or_truncated(client: TestClient, embedding: Path) -> None:
    """Nothing is cut silently; the header tells how many tokens were not read."""
    scorer = load_scorer(embedding)
    budget = scorer.token_budget("")
    texts = ["bees", "bees " * (budget // 2 + 1)]  # of two tokens each
    for path, key in (("/v1/embeddings", "input"), ("/embed", "inputs")):
        refused = client.post(path, json={key: texts})
        assert refused.status_code == 422
        assert refused.json()["wanted"] == f"at most {budget} tokens"
        assert "text at index 1" in refused.json()["message"]
    cut = client.post("/embed", json={"inputs": texts, "truncate": True})
    assert cut.headers["x-truncated-tokens"] == "2"
    expected = vectors_of(embedding, ["bees", "bees " * (budget // 2)])
    assert np.array_equal(np.float32(cut.json()), expected)


def test_raw_scores_are_log_odds(client: TestClient) -> None:
    """They order texts as scores do, and are finite for scores of 0 and 1."""
    ask = {"query": "bees dance", "texts": ["iron", "bees dance", "the bees"]}
    scores = client.post("/rerank", json=ask).json()
    raw = client.post("/rerank", json={**ask, "raw_scores": True}).json()
    assert [one["index"] for one in raw] == [one["index"] for one in scores]
    for one, score in zip(raw, scores, strict=True):
        kept = min(max(score["score"], 1e-7), 1 - 1e-7)
        assert one["score"] == pytest.approx(math.log(kept / (1 - kept)))


def test_without_documents_there_are_no_routes_for_them(client: TestClient) -> None:
    """Nothing pretends that there are none to be found."""
    assert client.get("/", follow_redirects=False).headers["location"] == "/docs"
    for path in ("/search?q=bees", "/about", "/documents/d"):
        assert client.get(path).status_code == 404, path
    for path in ("/docs", "/page/docs.js", "/healthz", "/readyz", "/metrics", "/info"):
        assert client.get(path).status_code == 200, path
    assert "/search" not in client.get("/openapi.json").json()["paths"]


def test_a_model_without_vectors_embeds_nothing(tmp_path: Path) -> None:
    """The same holds for a service without an embedding."""
    build_index(DOCUMENTS, tmp_path / "index")
    bert = write_bert(tmp_path / "bert", labels=1)
    for model, what in ((str(bert), "no vector per text"), (None, "no embedding model")):
        service = Service(Searcher(tmp_path / "index", Ranker(WordScorer())), model)
        with TestClient(application(service)) as made:
            answer = made.post("/v1/embeddings", json={"input": "bees"})
            assert answer.status_code == 422
            assert what in answer.json()["message"]


def test_models_only_as_a_process(tmp_path: Path) -> None:
    """It needs no index and leaves nothing behind."""
    bert = write_bert(tmp_path / "bert", labels=1)
    with running("--models-only", "--model", bert, cwd=tmp_path) as (port, _):
        texts = {"query": "bees", "documents": ["the bees", "a birch"]}
        assert send(port, "POST", "/v2/rerank", texts)[0] == 200
        assert send(port, "POST", "/v1/embeddings", {"input": "bees"})[0] == 200
    assert [path.name for path in tmp_path.iterdir()] == ["bert"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "there is nothing to serve"),
        (("--models-only", "notes"), "--models-only serves no index"),
        (("--models-only", "--writable"), "--writable has no effect with --models-only"),
        (("--models-only", "--filter", "a=b"), "--filter has no effect with --models-only"),
        (("--models-only", "--set", "first_stage.k1=2"), "--set first_stage.k1 has no effect"),
    ],
)
def test_an_index_or_models_only(words: tuple[str, ...], told: str) -> None:
    """Exactly one of the two, and no option of the other."""
    result = CliRunner().invoke(group, ["serve", *words])
    assert told in str(result.exception)
