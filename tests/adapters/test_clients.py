"""Do others' own clients, pointed at birchbark serve, work unchanged?"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import running

from birchbark.index.build import build_index
from birchbark.pipeline.texts import rank_texts
from birchbark.score.model import load_scorer
from conftest import DOCUMENTS, write_bert

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
def expected(bert: Path) -> list[tuple[int, float]]:
    return [(one.place, one.score) for one in rank_texts(QUERY, TEXTS, load_scorer(bert))]


@pytest.fixture(autouse=True)
def doors_left_open() -> Iterator[None]:
    """Others' clients leave their connections to the garbage collector, which tells of it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_coheres_client(address: str, expected: list[tuple[int, float]]) -> None:
    """Both versions of it; and what it raises where the key is wrong."""
    cohere = pytest.importorskip("cohere")
    second = cohere.ClientV2("secret", base_url=address)
    found = second.rerank(model="rerank-v3.5", query=QUERY, documents=TEXTS, top_n=3)
    assert [(one.index, one.relevance_score) for one in found.results] == expected[:3]
    first = cohere.Client("secret", base_url=address)
    found = first.rerank(model="rerank-v3.5", query=QUERY, documents=TEXTS, return_documents=True)
    assert [(one.index, one.relevance_score) for one in found.results] == expected
    assert found.results[0].document.text == TEXTS[expected[0][0]]
    with pytest.raises(cohere.errors.UnauthorizedError):
        cohere.ClientV2("wrong", base_url=address).rerank(model="m", query="a", documents=["b"])


def test_langchains_cohere_compressor(address: str, expected: list[tuple[int, float]]) -> None:
    """`CohereRerank` of langchain-cohere, with our address."""
    lc = pytest.importorskip("langchain_cohere")
    from langchain_core.documents import Document

    compressor = lc.CohereRerank(
        model="rerank-v3.5", cohere_api_key="secret", base_url=address, top_n=3
    )
    documents = [Document(text, metadata={"n": n}) for n, text in enumerate(TEXTS)]
    found = compressor.compress_documents(documents, QUERY)
    assert [(d.metadata["n"], d.metadata["relevance_score"]) for d in found] == expected[:3]


def nodes() -> list[Any]:
    """The texts, as LlamaIndex has them."""
    from llama_index.core.schema import NodeWithScore, TextNode

    return [NodeWithScore(node=TextNode(text=t, id_=str(n)), score=0) for n, t in enumerate(TEXTS)]


def test_a_client_of_text_embeddings_inference(
    address: str, expected: list[tuple[int, float]]
) -> None:
    """LlamaIndex's, of PyPI."""
    tei = pytest.importorskip("llama_index.postprocessor.tei_rerank")
    client = tei.TextEmbeddingInference(base_url=address, top_n=3, auth_token="Bearer secret")
    found = client.postprocess_nodes(nodes(), query_str=QUERY)
    assert [(int(one.node.node_id), one.score) for one in found] == expected[:3]


def test_a_client_of_jina(address: str, expected: list[tuple[int, float]]) -> None:
    """LlamaIndex's, of PyPI; what is wrong reaches whoever uses it."""
    jina = pytest.importorskip("llama_index.postprocessor.jinaai_rerank")
    client = jina.JinaRerank(base_url=f"{address}/v1", top_n=3, api_key="secret")
    found = client.postprocess_nodes(nodes(), query_str=QUERY)
    assert [(int(one.node.node_id), one.score) for one in found] == expected[:3]
    with pytest.raises(RuntimeError, match="query is too long"):
        client.postprocess_nodes(nodes(), query_str="birch " * 300)
