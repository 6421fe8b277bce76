"""Do the adapters for LangChain, LlamaIndex and Haystack give birchbark's rankings?"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from birchbark.adapters.found_passages import found_passages
from birchbark.collection.files.folder_state import FolderSource
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.pipeline.rank_texts import rank
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.upkeep.folder_index import build_folder_index
from birchbark.records import Document
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


def _check_evidence(found: list[tuple[str, list[dict[str, Any]]]]) -> None:
    """Sentences are where their offsets say, those of the best text first by score."""
    for text, sentences in found:
        assert sentences == sorted(sentences, key=lambda sentence: -sentence["score"])
        for sentence in sentences:
            assert text[sentence["start"] : sentence["end"]] == sentence["text"]
    assert found[0][1]


def test_langchain(bert: Path, expected: list[tuple[int, float]]) -> None:
    """The compressor works alone and behind a retriever, and does not change its input."""
    pytest.importorskip("langchain_core")
    pytest.importorskip("langchain_classic")
    from langchain_classic.retrievers import ContextualCompressionRetriever
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    from birchbark.adapters.langchain import BirchbarkRerank

    documents = [Document(text, metadata={"n": n}) for n, text in enumerate(TEXTS)]
    by_default = [(text.index, text.score) for text in rank(QUERY, TEXTS)]
    found = BirchbarkRerank(top_n=None, evidence=True).compress_documents(documents, QUERY)
    assert [(d.metadata["n"], d.metadata["relevance_score"]) for d in found] == by_default
    _check_evidence([(d.page_content, d.metadata["evidence"]) for d in found])
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


@pytest.fixture(scope="module")
def folder_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("folder")
    (directory / "notes").mkdir()
    (directory / "notes" / "bark.txt").write_text("Bark floats.\nA birch canoe rides the river.\n")
    (directory / "notes" / "bees.md").write_text("# Bees\n\nBees dance by the river.\n")
    source = FolderSource((str(directory / "notes"),))
    build_folder_index(source, directory / "index")
    return directory / "index"


def _check_passages(found: list[tuple[str, dict[str, Any], float]], searcher: Searcher) -> None:
    """They are the best passages of a search's hits, where their offsets say."""
    hits = searcher.search(QUERY, 2).hits
    assert [metadata["doc_id"] for _, metadata, _ in found] == [h.document.doc_id for h in hits]
    for (text, metadata, score), hit in zip(found, hits, strict=True):
        assert (score, metadata["score"]) == (hit.score, hit.score)
        assert text == hit.segments[0].segment.text
        assert text.endswith(hit.document.contents[metadata["start"] : metadata["end"]])
        assert metadata["sentence"] == hit.segments[0].text
        assert metadata["path"] == hit.document.fields["path"]
    (bark,) = (metadata for _, metadata, _ in found if metadata["path"] == "bark.txt")
    assert bark["line"] == 1
    assert "title" not in bark and "page" not in bark


def _metadata(found: list[Any]) -> list[dict[str, Any]]:
    return [document.metadata for document in found]


def test_langchain_searches_an_index(bert: Path, folder_index: Path) -> None:
    pytest.importorskip("langchain_core")
    from birchbark.adapters.langchain import BirchbarkRetriever

    retriever = BirchbarkRetriever(index=str(folder_index), model=str(bert), k=2)
    found = retriever.invoke(QUERY)
    _check_passages(
        [(d.page_content, d.metadata, d.metadata["score"]) for d in found],
        Searcher(folder_index, bert),
    )
    assert [d.id for d in found] == [f"{m['doc_id']}:{m['start']}" for m in _metadata(found)]
    assert len(BirchbarkRetriever(index=str(folder_index), k=1).invoke(QUERY)) == 1
    with pytest.raises(ValueError, match="top_k"):
        BirchbarkRetriever(index=str(folder_index), top_k=2)
    with pytest.raises(ValueError, match="k"):
        BirchbarkRetriever(index=str(folder_index), k=0)
    with pytest.raises(InputError, match="no index here"):
        BirchbarkRetriever(index="nowhere.index")


def test_a_document_that_is_only_a_title_is_found(bert: Path, tmp_path: Path) -> None:
    pytest.importorskip("langchain_core")
    from birchbark.adapters.langchain import BirchbarkRetriever

    build_index([Document("birch", {"title": "A birch"})], tmp_path / "index")
    for model in (str(bert), None):
        searcher = Searcher(tmp_path / "index", model or ())
        (found,) = found_passages(searcher, "birch", 1, None)
        assert found.text == "A birch"
        assert (found.metadata["start"], found.metadata["end"]) == (0, 7)
    retriever = BirchbarkRetriever(index=str(tmp_path / "index"), model=str(bert))
    assert [document.page_content for document in retriever.invoke("birch")] == ["A birch"]


def test_llama_index_searches_an_index(bert: Path, folder_index: Path) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.schema import MetadataMode

    from birchbark.adapters.llama_index import BirchbarkRetriever

    retriever = BirchbarkRetriever(str(folder_index), str(bert), similarity_top_k=2)
    found = retriever.retrieve(QUERY)
    _check_passages(
        [(one.node.text, one.node.metadata, one.score) for one in found],
        Searcher(folder_index, bert),
    )
    shown = found[0].node.get_content(metadata_mode=MetadataMode.LLM)
    assert "path: " in shown and "score" not in shown
    other = {one.node.node_id: one for one in retriever.retrieve("river bees")}
    for one in found:
        assert one.node.node_id == f"{one.node.metadata['doc_id']}:{one.node.metadata['start']}"
        assert one.node.hash == other[one.node.node_id].node.hash
        assert one.score != other[one.node.node_id].score
    assert found[0].node.hash != found[1].node.hash
    with pytest.raises(InputError, match="similarity_top_k"):
        BirchbarkRetriever(str(folder_index), str(bert), similarity_top_k=0)


def test_haystack_searches_an_index(bert: Path, folder_index: Path) -> None:
    """The component survives serialisation, and works in a pipeline before a ranker."""
    pytest.importorskip("haystack")
    from haystack import Pipeline

    from birchbark.adapters.haystack import BirchbarkRanker, BirchbarkRetriever

    retriever = BirchbarkRetriever(str(folder_index), str(bert), top_k=2)
    pipeline = Pipeline()
    pipeline.add_component("retriever", BirchbarkRetriever.from_dict(retriever.to_dict()))
    pipeline.add_component("ranker", BirchbarkRanker(str(bert), top_k=1))
    pipeline.connect("retriever", "ranker")
    run = pipeline.run(
        {"retriever": {"query": QUERY}, "ranker": {"query": QUERY}},
        include_outputs_from={"retriever"},
    )
    found = run["retriever"]["documents"]
    _check_passages([(d.content, d.meta, d.score) for d in found], Searcher(folder_index, bert))
    assert [d.id for d in found] == [f"{d.meta['doc_id']}:{d.meta['start']}" for d in found]
    (best,) = run["ranker"]["documents"]
    assert best.meta["path"] in {d.meta["path"] for d in found}
    assert len(retriever.run(QUERY, top_k=1)["documents"]) == 1
    with pytest.raises(InputError, match="top_k"):
        BirchbarkRetriever(str(folder_index), top_k=0)
    with pytest.raises(InputError, match="no index here"):
        BirchbarkRetriever("nowhere.index").warm_up()


def test_models_are_loaded_before_the_first_query(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those by default as well as a named one; no ranker holds them, so that it can be copied."""
    pytest.importorskip("haystack")
    pytest.importorskip("langchain_core")
    pytest.importorskip("llama_index.core")
    from birchbark.adapters import haystack, langchain, llama_index

    loaded = list[str | None]()
    for adapter in (haystack, langchain, llama_index):
        monkeypatch.setattr(adapter, "load_once", loaded.append)
    for model in (None, str(bert)):
        haystack.BirchbarkRanker(model).warm_up()
        assert deepcopy(langchain.BirchbarkRerank(model=model)).model == model
        assert deepcopy(llama_index.BirchbarkRerank(model=model)).model == model
    assert loaded == [None] * 3 + [str(bert)] * 3


def test_queries_are_taken_literally(folder_index: Path) -> None:
    """What is an operator in a search is text in the question of an application."""
    searcher = Searcher(folder_index, ())
    found, expected = (
        [one.passage_id for one in found_passages(searcher, query, 2, None)]
        for query in ('"river birch" -canoe', "river birch canoe")
    )
    assert found == expected
    assert len(found) == 2


def test_langchain_looks_for_sentences_only_if_asked(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models that score whole documents have none."""
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document

    from birchbark.adapters import langchain, ranked_texts

    def refuse(*arguments: object) -> None:
        raise AssertionError("sentences were not asked for")

    monkeypatch.setattr(ranked_texts, "highlight", refuse)
    compressor = langchain.BirchbarkRerank(model=str(bert))
    assert compressor.compress_documents([Document("a canoe")], QUERY)


def test_llama_index(bert: Path, expected: list[tuple[int, float]]) -> None:
    """The postprocessor returns the best nodes with their scores."""
    pytest.importorskip("llama_index.core")
    from llama_index.core.schema import NodeWithScore, TextNode

    from birchbark.adapters.llama_index import BirchbarkRerank

    nodes = [NodeWithScore(node=TextNode(text=t, id_=str(n)), score=0) for n, t in enumerate(TEXTS)]
    ranked = BirchbarkRerank(model=str(bert), top_n=3).postprocess_nodes(nodes, query_str=QUERY)
    assert [(int(one.node.node_id), one.score) for one in ranked] == expected[:3]
    reranker = BirchbarkRerank(model=str(bert), top_n=3, evidence=True)
    ranked = reranker.postprocess_nodes(nodes, query_str=QUERY)
    assert [(int(one.node.node_id), one.score) for one in ranked] == expected[:3]
    _check_evidence([(one.node.text, one.node.metadata["evidence"]) for one in ranked])
    assert all("evidence" not in one.node.metadata for one in nodes)


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
    ranked = BirchbarkRanker(evidence=True).run(QUERY, documents)["documents"]
    assert [(int(d.id), d.score) for d in ranked] == [
        (t.index, t.score) for t in rank(QUERY, TEXTS)
    ]
    _check_evidence([(d.content, d.meta["evidence"]) for d in ranked])
