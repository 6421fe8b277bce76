"""Do the adapters for LangChain, LlamaIndex, Haystack and PyTerrier give birchbark's rankings?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.index.build_index import build_index
from birchbark.pipeline.rank_texts import rank
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.load_scorer import load_scorer
from conftest import DOCUMENTS, write_bert

QUERY = "birch river"
TEXTS = [document.contents for document in DOCUMENTS]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert") / "bert", labels=1)


@pytest.fixture(scope="module")
def expected(bert: Path) -> list[tuple[int, float]]:
    return [(text.index, text.score) for text in rank(QUERY, TEXTS, load_scorer(bert))]


def test_langchain(bert: Path, expected: list[tuple[int, float]]) -> None:
    """The compressor works alone and behind a retriever, and does not change its input."""
    pytest.importorskip("langchain_core")
    pytest.importorskip("langchain_classic")
    from langchain_classic.retrievers import ContextualCompressionRetriever
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    from birchbark.adapters.langchain import BirchbarkRerank

    documents = [Document(text, metadata={"n": n}) for n, text in enumerate(TEXTS)]
    compressor = BirchbarkRerank(model=str(bert), top_n=2)
    compressed = compressor.compress_documents(documents, QUERY)
    assert [(d.metadata["n"], d.metadata["relevance_score"]) for d in compressed] == expected[:2]
    assert all("relevance_score" not in d.metadata for d in documents)
    assert (
        len(BirchbarkRerank(model=str(bert), top_n=None).compress_documents(documents, QUERY)) == 5
    )
    assert compressor.compress_documents([], QUERY) == []

    class All(BaseRetriever):
        def _get_relevant_documents(self, query: str, **more: object) -> list[Document]:
            return documents

    both = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=All())
    assert [d.metadata["n"] for d in both.invoke(QUERY)] == [n for n, _ in expected[:2]]
    with pytest.raises(ValueError, match="top_n"):
        BirchbarkRerank(model=str(bert), top_n=0)


def test_llama_index(bert: Path, expected: list[tuple[int, float]]) -> None:
    """The postprocessor returns the best nodes with their scores."""
    pytest.importorskip("llama_index.core")
    from llama_index.core.schema import NodeWithScore, TextNode

    from birchbark.adapters.llama_index import BirchbarkRerank

    nodes = [NodeWithScore(node=TextNode(text=t, id_=str(n)), score=0) for n, t in enumerate(TEXTS)]
    ranked = BirchbarkRerank(model=str(bert), top_n=3).postprocess_nodes(nodes, query_str=QUERY)
    assert [(int(one.node.node_id), one.score) for one in ranked] == expected[:3]


def test_haystack(bert: Path, expected: list[tuple[int, float]]) -> None:
    """The ranker works in a pipeline, before and after serialisation."""
    pytest.importorskip("haystack")
    from haystack import Document, Pipeline

    from birchbark.adapters.haystack import BirchbarkRanker

    documents = [Document(id=str(n), content=text) for n, text in enumerate(TEXTS)]
    ours = "birchbark.adapters.haystack"
    pipeline = Pipeline()
    pipeline.add_component("ranker", BirchbarkRanker(str(bert), top_k=4))
    for loaded in (pipeline, Pipeline.loads(pipeline.dumps(), allowed_modules=[ours])):
        answer = loaded.run({"ranker": {"query": QUERY, "documents": documents}})
        ranked = answer["ranker"]["documents"]
        assert [(int(d.id), d.score) for d in ranked] == expected[:4]
    assert len(BirchbarkRanker(str(bert)).run(QUERY, documents, top_k=1)["documents"]) == 1


def test_pyterrier(bert: Path, tmp_path: Path) -> None:
    """The transformers work alone, as a pipeline and in an experiment."""
    pt = pytest.importorskip("pyterrier")
    import pandas as pd

    from birchbark.adapters.pyterrier import BirchbarkReranker, BirchbarkRetriever
    from birchbark.errors import InputError

    index = build_index(DOCUMENTS, tmp_path / "index")
    searcher = Searcher(tmp_path / "index", bert)
    topics = pd.DataFrame([["1", QUERY], ["2", "bees"], ["3", "zebra"]], columns=["qid", "query"])
    bm25 = BirchbarkRetriever(tmp_path / "index", first_stage_only=True)
    whole = BirchbarkRetriever(searcher)
    for query in (QUERY, "bees"):
        for transformer, ranker in ((bm25, None), (whole, searcher.rankers)):
            hits = search(IndexEngine(index), query, ranker, 1000).hits
            frame = transformer.transform(topics)
            of_query = frame[frame["query"] == query]
            assert of_query["docno"].tolist() == [hit.document.doc_id for hit in hits]
            assert of_query["score"].tolist() == [hit.score for hit in hits]
            assert of_query["rank"].tolist() == list(range(len(hits)))
    both = (bm25 >> BirchbarkReranker(searcher)).transform(topics)
    assert (
        both[["qid", "docno"]].to_numpy().tolist()
        == whole.transform(topics)[["qid", "docno"]].to_numpy().tolist()
    )
    topics["topic"] = ["boats", "insects", "beasts"]  # other columns are preserved
    for frame in (bm25.transform(topics), (bm25 >> BirchbarkReranker(searcher)).transform(topics)):
        assert frame.groupby("qid")["topic"].unique().map(list).to_dict() == {
            "1": ["boats"],
            "2": ["insects"],
        }
    judged = pd.DataFrame([["1", "canoe", 1], ["2", "bees", 1]], columns=["qid", "docno", "label"])
    measured = pt.Experiment(
        [bm25, whole],
        topics[["qid", "query"]],
        judged,
        ["map", "recip_rank"],
        names=["BM25", "BERT"],
    ).set_index("name")
    # Equal, because one document is relevant.
    assert measured.loc["BM25", "map"] == measured.loc["BM25", "recip_rank"] > 0
    none = bm25.transform(topics[topics["qid"] == "3"])
    assert (len(none), list(none.columns)) == (0, [*both.columns, "topic"])
    with pytest.raises(InputError, match="has no column 'query'"):
        whole.transform(pd.DataFrame({"qid": ["1"]}))
