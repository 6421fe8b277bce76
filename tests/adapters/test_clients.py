"""Do unchanged clients of Cohere, Jina, OpenAI and others work with birchbark serve?"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import running

from birchbark import defaults
from birchbark.index.build_index import build_index
from birchbark.pipeline.rank_texts import rank
from birchbark.pipeline.searcher import Searcher
from birchbark.score.load_scorer import load_scorer
from conftest import DOCUMENTS, write_bert

# Some clients leave connections to the garbage collector, which warns about them at any time.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

QUERY = "birch river"
TEXTS = [document.contents for document in DOCUMENTS]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert") / "bert", labels=1)


@pytest.fixture(scope="module")
def address(bert: Path) -> Iterator[str]:
    build_index(DOCUMENTS, bert.parent / "index")
    (bert.parent / "key").write_text("secret\n")
    with running("index", "--model", bert, "--key-file", "key", cwd=bert.parent) as (port, _):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def expected(address: str, bert: Path) -> list[tuple[int, float]]:
    ranker = Searcher(bert.parent / "index", bert).rankers[0]
    return [(text.index, text.score) for text in rank(QUERY, TEXTS, ranker)]


@pytest.fixture(autouse=True)
def collect_unclosed_connections() -> Iterator[None]:
    """Connections that a client left are collected while their warnings are ignored."""
    yield
    gc.collect()


def test_coheres_client(address: str, expected: list[tuple[int, float]]) -> None:
    """Both versions of the client work; a wrong key raises its UnauthorizedError."""
    cohere = pytest.importorskip("cohere")
    second = cohere.ClientV2("secret", base_url=address)
    ranked = second.rerank(model="rerank-v3.5", query=QUERY, documents=TEXTS, top_n=3)
    assert [(result.index, result.relevance_score) for result in ranked.results] == expected[:3]
    first = cohere.Client("secret", base_url=address)
    ranked = first.rerank(model="rerank-v3.5", query=QUERY, documents=TEXTS, return_documents=True)
    assert [(result.index, result.relevance_score) for result in ranked.results] == expected
    assert ranked.results[0].document.text == TEXTS[expected[0][0]]
    with pytest.raises(cohere.errors.UnauthorizedError):
        cohere.ClientV2("wrong", base_url=address).rerank(model="m", query="a", documents=["b"])


def test_langchains_cohere_compressor(address: str, expected: list[tuple[int, float]]) -> None:
    """`CohereRerank` of langchain-cohere works with the base URL of the service."""
    lc = pytest.importorskip("langchain_cohere")
    from langchain_core.documents import Document

    compressor = lc.CohereRerank(
        model="rerank-v3.5", cohere_api_key="secret", base_url=address, top_n=3
    )
    documents = [Document(text, metadata={"n": n}) for n, text in enumerate(TEXTS)]
    ranked = compressor.compress_documents(documents, QUERY)
    assert [(d.metadata["n"], d.metadata["relevance_score"]) for d in ranked] == expected[:3]


def nodes() -> list[Any]:
    """Return the texts as LlamaIndex nodes."""
    from llama_index.core.schema import NodeWithScore, TextNode

    return [NodeWithScore(node=TextNode(text=t, id_=str(n)), score=0) for n, t in enumerate(TEXTS)]


def test_a_client_of_text_embeddings_inference(
    address: str, expected: list[tuple[int, float]]
) -> None:
    """LlamaIndex's client for text-embeddings-inference works."""
    tei = pytest.importorskip("llama_index.postprocessor.tei_rerank")
    client = tei.TextEmbeddingInference(base_url=address, top_n=3, auth_token="Bearer secret")
    ranked = client.postprocess_nodes(nodes(), query_str=QUERY)
    assert [(int(result.node.node_id), result.score) for result in ranked] == expected[:3]


def test_a_client_of_jina(address: str, expected: list[tuple[int, float]]) -> None:
    """LlamaIndex's client for Jina works and reports the service's error messages."""
    jina = pytest.importorskip("llama_index.postprocessor.jinaai_rerank")
    client = jina.JinaRerank(base_url=f"{address}/v1", top_n=3, api_key="secret")
    ranked = client.postprocess_nodes(nodes(), query_str=QUERY)
    assert [(int(result.node.node_id), result.score) for result in ranked] == expected[:3]
    with pytest.raises(RuntimeError, match="query is too long"):
        client.postprocess_nodes(nodes(), query_str="birch " * 300)


def test_openais_client(address: str) -> None:
    """It asks for base64; texts come back in order as unit vectors, and errors are told."""
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{address}/v1", api_key="secret", max_retries=0) as client:
        found = client.embeddings.create(model="any", input=TEXTS)
        assert [one.index for one in found.data] == list(range(len(TEXTS)))
        expected: Any = load_scorer(defaults.EMBEDDING)
        vectors = expected.embed(expected.encode(TEXTS))
        assert np.array_equal(np.float32([one.embedding for one in found.data]), vectors)
        assert found.usage.total_tokens > len(TEXTS)
        short = client.embeddings.create(model="any", input="birch", dimensions=64)
        assert np.linalg.norm(short.data[0].embedding) == pytest.approx(1, abs=1e-5)
        with pytest.raises(openai.UnprocessableEntityError, match="too long for the model"):
            client.embeddings.create(model="any", input="birch " * 600)
    with (
        openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.embeddings.create(model="any", input="birch")


def test_hugging_faces_client(address: str) -> None:
    """`InferenceClient` speaks with text-embeddings-inference."""
    hub = pytest.importorskip("huggingface_hub")
    client = hub.InferenceClient(model=f"{address}/embed", token="secret")
    expected: Any = load_scorer(defaults.EMBEDDING)
    found = client.feature_extraction("birch river", truncate=True)
    assert np.array_equal(found, expected.embed(expected.encode(["birch river"])))
