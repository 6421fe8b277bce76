"""Do MTEB and BEIR measure the same figures as our own evaluation?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from birchbark import defaults
from birchbark.adapters.beir import BirchbarkSearch as BeirSearch
from birchbark.adapters.memory_collection import MemoryCollection
from birchbark.collection.data_files import find_data_root
from birchbark.collection.documents import read_collection
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.combine.aggregate import Mean, Top
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.index.build_index import build_index
from birchbark.pipeline.pair_scorer import PairScorer
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Qrels, Query, Run
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.score import precision as precision_module
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.paragraphs import paragraphs
from conftest import DOCUMENTS

QUERIES = [Query("1", "birch river"), Query("2", "bees"), Query("3", "zebra")]
QRELS = Qrels({"1": {"canoe": 1}, "2": {"bees": 2, "canoe": 0}})
MEASURES = ["nDCG@10", "AP@100", "R@10"]


@pytest.fixture
def ranker(bert: Callable[..., Path]) -> Ranker:
    """A ranker with a tiny random cross-encoder."""
    return Ranker(load_scorer(bert(labels=1)))


def our_run(
    documents: list[Document], queries: list[Query], ranker: Ranker | None, folder: Path
) -> Run:
    index = build_index(documents, folder / "ours")
    run = rank_queries(index, queries, depth=100)
    return rerank(index, run, queries, ranker) if ranker else run


def our_figures(qrels: Qrels, run: Run) -> list[float]:
    means = measure(qrels, run, MEASURES).means
    return [round(means[name], 4) for name in MEASURES]


def beir_figures(
    documents: list[Document], queries: list[Query], qrels: Qrels, model: Any
) -> list[float]:
    evaluation = pytest.importorskip("beir.retrieval.evaluation")
    evaluate = evaluation.EvaluateRetrieval(BeirSearch(model), k_values=[10, 100])
    corpus = {d.doc_id: {"title": d.title, "text": d.text} for d in documents}
    results = evaluate.retrieve(corpus, {q.query_id: q.text for q in queries})
    grades = {query_id: dict(of_query) for query_id, of_query in qrels.grades.items()}
    ndcg, average, recall, _ = evaluate.evaluate(grades, results, [10, 100])
    found = ndcg["NDCG@10"], average["MAP@100"], recall["Recall@10"]
    return [round(value, 4) for value in found]


def mteb_figures(
    documents: list[Document],
    queries: list[Query],
    qrels: Qrels,
    model: Any,
    candidates: dict[str, list[str]] | None = None,
) -> list[float]:
    mteb = pytest.importorskip("mteb")
    from datasets import Dataset

    from birchbark.adapters.mteb import BirchbarkSearch

    (task,) = mteb.get_tasks(["SciFact"])
    rows = [{"id": d.doc_id, "title": d.title, "text": d.text} for d in documents]
    judged = [{"id": q.query_id, "text": q.text} for q in queries if q.query_id in qrels.grades]
    split = {
        "corpus": Dataset.from_list(rows),
        "queries": Dataset.from_list(judged),
        "relevant_docs": {query_id: dict(x) for query_id, x in qrels.grades.items()},
        "top_ranked": candidates,
    }
    task.dataset, task.data_loaded = {"default": {"test": split}}, True
    searcher = model if isinstance(model, BirchbarkSearch) else BirchbarkSearch(model)
    results = mteb.evaluate(searcher, [task], cache=None, show_progress_bar=False)
    scores = results[0].scores["test"][0]
    found = scores["ndcg_at_10"], scores["map_at_100"], scores["recall_at_10"]
    return [round(value, 4) for value in found]


@pytest.mark.parametrize("figures", [beir_figures, mteb_figures])
@pytest.mark.parametrize("with_model", [False, True])
def test_small_collection(
    figures: Callable[..., list[float]], with_model: bool, ranker: Ranker, tmp_path: Path
) -> None:
    """The first stage ranks alone, and a model re-ranks it."""
    model = ranker if with_model else None
    run = our_run(DOCUMENTS, QUERIES, model, tmp_path)
    expected = our_figures(QRELS, run)
    assert figures(DOCUMENTS, QUERIES, QRELS, ranker if with_model else ()) == expected
    assert expected[0] > 0


@pytest.mark.parametrize("figures", [beir_figures, mteb_figures])
def test_scifact(figures: Callable[..., list[float]], tmp_path: Path) -> None:
    """BM25 ranks SciFact."""
    root = find_data_root()
    if not root or not (root / "scifact").is_dir():
        pytest.skip("SciFact is not here")
    documents = list(read_collection(root / "scifact" / "corpus.jsonl"))
    queries = read_queries(root / "scifact" / "queries.tsv")
    qrels = read_qrels(root / "scifact" / "qrels.txt")
    expected = our_figures(qrels, our_run(documents, queries, None, tmp_path))
    assert figures(documents, queries, qrels, ()) == expected


def test_as_many_candidates_as_the_ranker_reads(ranker: Ranker) -> None:
    """The best documents are the same, however many are asked for."""
    collection = MemoryCollection(ranker, FirstStage())
    collection.index_records({"id": d.doc_id, **d.fields} for d in DOCUMENTS)
    (one,) = collection.rank({"1": "birch river"}, 1).values()
    (all_found,) = collection.rank({"1": "birch river"}, 100).values()
    assert len(all_found) > 2
    assert list(one.items()) == list(all_found.items())[:1]


def test_figures_do_not_depend_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named model is computed in fp32, as by `birchbark rerank`, also where int8 is faster."""
    monkeypatch.setattr(precision_module, "has_vnni", lambda: True)
    (ranker,) = MemoryCollection().rankers
    in_fp32 = load_scorer(defaults.MODEL)
    assert ranker.scorer.fingerprint == in_fp32.fingerprint


def test_beir_reranks_with_pair_scorer() -> None:
    """BEIR's `Rerank` takes a PairScorer as its model."""
    reranking = pytest.importorskip("beir.reranking")
    scorer = PairScorer()
    corpus = {d.doc_id: {"title": "", "text": d.text} for d in DOCUMENTS}
    results = {"1": dict.fromkeys(corpus, 1.0)}
    query = QUERIES[0].text
    found = reranking.Rerank(scorer).rerank(corpus, {"1": query}, results, top_k=3)
    expected = scorer.predict([(query, corpus[doc_id]["text"]) for doc_id in found["1"]])
    assert list(found["1"].values()) == expected.tolist()


def test_mteb_describes_the_models(ranker: Ranker, bert: Callable[..., Path]) -> None:
    """Sizes, licences, tasks seen in training; the revision differs with any setting."""
    pytest.importorskip("mteb")
    from birchbark.adapters.mteb import BirchbarkSearch

    default = BirchbarkSearch().mteb_model_meta
    assert default.name == "birchbark/birchbark-minilm-l6"
    assert default.n_parameters and default.n_embedding_parameters
    assert 0 < default.n_embedding_parameters < default.n_parameters < 50_000_000
    seen = {"MSMARCO", "NQ", "SciFact", "NanoQuoraRetrieval", "QuoraRetrieval"}
    assert seen <= (default.training_datasets or set())
    assert default.license is None  # that of the cross-encoder is not settled
    bm25 = BirchbarkSearch(()).mteb_model_meta
    assert (bm25.name, bm25.n_parameters, bm25.training_datasets) == ("birchbark/bm25", 0, set())
    assert BirchbarkSearch(ranker).mteb_model_meta.training_datasets is None
    assert BirchbarkSearch(bert(labels=1)).mteb_model_meta.training_datasets is None
    other = FirstStage(BM25(k1=1.2, b=0.75))
    rankers = [ranker, ranker, *(replace(ranker, aggregation=x()) for x in (Mean, Top))]
    rankers.append(replace(ranker, segmenter=paragraphs))
    metas = [default, bm25, *(BirchbarkSearch(x).mteb_model_meta for x in rankers)]
    metas += [BirchbarkSearch((), other).mteb_model_meta]
    revisions = [meta.revision for meta in metas]
    assert revisions[2] == revisions[3]
    assert len(set(revisions)) == len(revisions) - 1
    embedding = BirchbarkSearch("birchbark-embedding-l6").mteb_model_meta
    assert (embedding.model_type, embedding.license) == (["dense"], "apache-2.0")
    assert BirchbarkSearch(bert(labels=1)).mteb_model_meta.license is None


def test_mteb_reranks_given_candidates(ranker: Ranker) -> None:
    """In a re-ranking task only its candidates are ranked, also one without a word of the query."""
    mteb = pytest.importorskip("mteb")
    from birchbark.adapters.mteb import BirchbarkSearch

    candidates = {"1": ["bees", "canoe"], "2": ["bees"]}
    assert mteb_figures(DOCUMENTS, QUERIES, QRELS, ranker, candidates)[2] == 1.0
    collection = MemoryCollection(ranker, FirstStage())
    collection.index_records({"id": d.doc_id, **d.fields} for d in DOCUMENTS)
    found = collection.rank({"1": "birch river", "2": "bees"}, 10, candidates)
    assert {query_id: set(ranked) for query_id, ranked in found.items()} == {
        query_id: set(names) for query_id, names in candidates.items()
    }
    searcher = BirchbarkSearch(ranker)
    assert isinstance(searcher, mteb.models.SearchProtocol)
    with pytest.raises(InputError, match="index documents first"):
        searcher.search([{"id": "1", "text": "bees"}], top_k=3)
    with pytest.raises(InputError, match="query 1: a query is not a text"):
        searcher.search([{"id": "1", "text": ["bees"]}], top_k=3)
