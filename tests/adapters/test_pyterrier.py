"""Do the transformers for PyTerrier give birchbark's rankings, alone and in its pipelines?"""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import Any

import pytest

from birchbark.collection.data_files import find_data_root
from birchbark.collection.documents import read_collection
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.index.build_index import build_index
from birchbark.pipeline.load_rankers import load_ranker, make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.stage_options import StageOptions
from birchbark.records import Document, Qrels, Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import rank_queries
from conftest import DOCUMENTS, write_bert

pt = pytest.importorskip("pyterrier")
pd = pytest.importorskip("pandas")

QUERY = "birch river"
TOPICS = pd.DataFrame([["1", QUERY], ["2", "bees"], ["3", "zebra"]], columns=["qid", "query"])


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert") / "bert", labels=1)


@pytest.fixture
def searcher(bert: Path, tmp_path: Path) -> Searcher:
    build_index(DOCUMENTS, tmp_path / "index")
    return Searcher(tmp_path / "index", bert)


def records() -> list[dict[str, str]]:
    return [{"docno": document.doc_id, **document.fields} for document in DOCUMENTS]


def ids(frame: Any) -> list[list[str]]:
    return frame[["qid", "docno"]].to_numpy().tolist()  # type: ignore[no-any-return]


def test_retriever(searcher: Searcher) -> None:
    """Its documents, scores and ranks are those of `search`."""
    from birchbark.adapters.pyterrier import BirchbarkRetriever

    bm25 = BirchbarkRetriever(searcher.directory, first_stage_only=True)
    for transformer, rankers in ((bm25, ()), (BirchbarkRetriever(searcher), searcher.rankers)):
        frame = transformer.transform(TOPICS)
        for query in (QUERY, "bees"):
            hits = search(IndexEngine(searcher.index), query, rankers, 1000).hits
            of_query = frame[frame["query"] == query]
            assert of_query["docno"].tolist() == [hit.document.doc_id for hit in hits]
            assert of_query["score"].tolist() == [hit.score for hit in hits]
            assert of_query["rank"].tolist() == list(range(len(hits)))


def test_copies_and_scores(tmp_path: Path, bert: Path) -> None:
    """Each copy has a row, below the hit that it is a copy of; scores fall with the rank."""
    from birchbark.adapters.pyterrier import BirchbarkRetriever

    copies = [Document(f"copy {n}", dict(DOCUMENTS[0].fields)) for n in range(3)]
    build_index([*DOCUMENTS, *copies], tmp_path / "copies")
    ranker = load_ranker(model=str(bert), embedding="none", depth=2)
    for index in (Searcher(tmp_path / "copies", ()), Searcher(tmp_path / "copies", ranker)):
        frame = BirchbarkRetriever(index).transform(TOPICS)
        of_query = frame[frame["query"] == QUERY]
        assert {document.doc_id for document in copies} < set(of_query["docno"])
        found = of_query["docno"].tolist()
        assert Ranking.of(found, of_query["score"].tolist()).doc_ids == tuple(found)
        assert len(BirchbarkRetriever(index, top=2).transform(TOPICS)["docno"]) <= 4


def test_reranker(searcher: Searcher) -> None:
    """Behind BM25 it equals the whole search; other columns are preserved."""
    from birchbark.adapters.pyterrier import BirchbarkReranker, BirchbarkRetriever

    bm25 = BirchbarkRetriever(searcher.directory, first_stage_only=True)
    pipeline = bm25 >> BirchbarkReranker(searcher)
    assert ids(pipeline.transform(TOPICS)) == ids(BirchbarkRetriever(searcher).transform(TOPICS))
    topics = TOPICS.assign(topic=["boats", "insects", "beasts"])
    for transformer in (bm25, pipeline):
        topic_of = transformer.transform(topics).groupby("qid")["topic"].unique().map(list)
        assert topic_of.to_dict() == {"1": ["boats"], "2": ["insects"]}
    none = pipeline.transform(topics[topics["qid"] == "3"])
    assert (len(none), set(none.columns)) == (0, set(pipeline.transform(topics).columns))


def test_texts_in_columns(searcher: Searcher, bert: Path) -> None:
    """Without an index, the texts of the frame give the same ranking and evidence.

    Queries have one word, since sentences are chosen without idf.
    """
    from birchbark.adapters.pyterrier import BirchbarkIndex, BirchbarkReranker, BirchbarkRetriever

    topics = pd.DataFrame([["1", "river"], ["2", "bees"]], columns=["qid", "query"])
    bm25 = BirchbarkRetriever(searcher.directory, first_stage_only=True)
    by_index = BirchbarkReranker(searcher, evidence=True).transform(bm25.transform(topics))
    loader = pt.text.get_text(BirchbarkIndex(searcher.directory), ["title", "text"])
    of_columns = BirchbarkReranker(model=str(bert), evidence=True)
    by_column = (bm25 >> loader >> of_columns).transform(topics)
    columns = ["qid", "docno", "score", "rank", "evidence"]
    assert by_column[columns].to_dict("list") == by_index[columns].to_dict("list")
    assert by_column["title"].notna().all()
    found = [item for row in by_index["evidence"] for item in row]
    assert found and all(item["end"] - item["start"] == len(item["text"]) for item in found)
    broken = (bm25 >> loader).transform(topics).assign(text=None)
    with pytest.raises(InputError, match=r"document .*: column 'text': not a string"):
        of_columns.transform(broken)


def test_rank_cutoff(searcher: Searcher) -> None:
    """A cutoff becomes part of retriever and re-ranker, which gives the same documents."""
    from birchbark.adapters.pyterrier import BirchbarkReranker, BirchbarkRetriever

    bm25 = BirchbarkRetriever(searcher.directory, first_stage_only=True)
    for pipeline in (bm25, bm25 >> BirchbarkReranker(searcher)):
        fused = (pipeline % 1).compile()
        assert "RankCutoff" in repr(pipeline % 1)
        assert "RankCutoff" not in repr(fused)
        whole = pipeline.transform(TOPICS)
        assert ids(fused.transform(TOPICS)) == ids(whole[whole["rank"] < 1])
    assert bm25.fuse_rank_cutoff(3).fuse_rank_cutoff(5).top == 3
    assert bm25.top == 1000


def test_index(tmp_path: Path) -> None:
    """Documents of a generator are indexed; an index is replaced only if that is allowed."""
    from birchbark.adapters.pyterrier import BirchbarkIndex

    index = BirchbarkIndex(tmp_path / "index").index(record for record in records())
    assert ids(index.bm25().transform(TOPICS))
    stored = {d.doc_id: d.fields for d in Searcher(tmp_path / "index", ()).index}
    assert stored == {document.doc_id: document.fields for document in DOCUMENTS}
    texts = index.text_loader("text").transform(pd.DataFrame({"docno": ["bees", "canoe"]}))
    text_of = {document.doc_id: document.text for document in DOCUMENTS}
    assert texts["text"].tolist() == [text_of["bees"], text_of["canoe"]]
    with pytest.raises(InputError, match="exists"):
        BirchbarkIndex(tmp_path / "index").index(records())
    BirchbarkIndex(tmp_path / "index", overwrite=True).index(records()[:2])
    with pytest.raises(InputError, match="has no text"):
        BirchbarkIndex(tmp_path / "other").index([{"docno": "1"}])
    assert not (tmp_path / "other").exists()


def test_inspection(searcher: Searcher) -> None:
    """PyTerrier finds out which columns each transformer needs and returns, without ranking."""
    from birchbark.adapters.pyterrier import BirchbarkIndex, BirchbarkReranker, BirchbarkRetriever

    ranked = ["qid", "query", "docno", "score", "rank"]
    expected = {
        BirchbarkRetriever(searcher): ({"qid", "query"}, ranked),
        BirchbarkReranker(searcher): ({"qid", "query", "docno", "score"}, ranked),
        BirchbarkReranker(evidence=True): (
            {"qid", "query", "docno", "score", "text"},
            [*ranked, "evidence", "text"],
        ),
    }
    for transformer, (inputs, outputs) in expected.items():
        (found,) = pt.inspect.transformer_inputs(transformer)
        assert set(found) == inputs
        assert pt.inspect.transformer_outputs(transformer, found) == outputs
        assert pt.inspect.transformer_attributes(transformer)
        with pytest.raises(pt.validate.InputValidationError, match="query"):
            transformer.transform(pd.DataFrame({"qid": ["1"]}))
    assert pt.inspect.indexer_inputs(BirchbarkIndex("new")) == [["docno", "text"]]


@pytest.mark.filterwarnings("ignore:.*TransfomerTestCase")
def test_tests_that_pyterrier_brings(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transformer can be inspected and drawn."""
    from birchbark.adapters.pyterrier import (
        BirchbarkReranker,
        BirchbarkRetriever,
        BirchbarkTextLoader,
    )

    monkeypatch.setattr(pt.documentation, "url_for_class", lambda *_, **__: None)  # of the web
    transformers = (
        BirchbarkRetriever(searcher),
        BirchbarkReranker(searcher),
        BirchbarkReranker(evidence=True),
        BirchbarkTextLoader(searcher.index.directory),
    )
    for transformer in transformers:
        tests = pt.testing.transformer_test_class(lambda made=transformer: made)
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(tests).run(result)
        assert result.testsRun > 1
        assert not [*result.errors, *result.failures], transformer


def test_experiment(searcher: Searcher) -> None:
    """An experiment measures both systems."""
    from birchbark.adapters.pyterrier import BirchbarkRetriever

    judged = pd.DataFrame([["1", "canoe", 1], ["2", "bees", 1]], columns=["qid", "docno", "label"])
    systems = [
        BirchbarkRetriever(searcher.directory, first_stage_only=True),
        BirchbarkRetriever(searcher),
    ]
    measured = pt.Experiment(systems, TOPICS, judged, ["map", "recip_rank"], names=["BM25", "BERT"])
    measured = measured.set_index("name")
    # Equal, because one document is relevant.
    assert measured.loc["BM25", "map"] == measured.loc["BM25", "recip_rank"] > 0


def test_dl19(tmp_path: Path) -> None:
    """On TREC DL19, the measures are those of our own re-ranking; nearly so with texts as columns.

    Then sentences are chosen without idf.
    """
    from birchbark.adapters.pyterrier import BirchbarkIndex, BirchbarkReranker

    root = find_data_root()
    if not root or not (root / "trec-dl19-passage").is_dir():
        pytest.skip("TREC DL19 is not here")
    data = root / "trec-dl19-passage"
    queries = read_queries(data / "queries.tsv")[::8]
    index = BirchbarkIndex(tmp_path / "index").index(
        {"docno": document.doc_id, **document.fields}
        for document in read_collection(str(data / "corpus.jsonl"))
    )
    grades = read_qrels(data / "qrels.txt").grades
    qrels = Qrels({query.query_id: grades[query.query_id] for query in queries})
    judged = pd.DataFrame(
        [(q, doc_id, g) for q, of_query in qrels.grades.items() for doc_id, g in of_query.items()],
        columns=["qid", "docno", "label"],
    )
    topics = pd.DataFrame([(q.query_id, q.text) for q in queries], columns=["qid", "query"])
    by_column = index.text_loader() >> BirchbarkReranker()
    pipelines = [index.bm25() % 20 >> ranker for ranker in (index.reranker(), by_column)]
    measured = pt.Experiment(pipelines, topics, judged, ["map", "ndcg_cut_10"])

    opened = Searcher(tmp_path / "index", ()).index
    ranker = make_ranker(StageOptions(), LoadedModels(), auto_int8=True)
    run = rerank(opened, rank_queries(opened, queries, depth=20), queries, ranker)
    ours = measure(qrels, run, ["AP", "nDCG@10"]).means
    for column, name in (("map", "AP"), ("ndcg_cut_10", "nDCG@10")):
        assert measured[column].iloc[0] == pytest.approx(ours[name], abs=5e-5)
        assert measured[column].iloc[1] == pytest.approx(ours[name], abs=0.01)


def test_what_would_have_no_effect_is_refused(searcher: Searcher, tmp_path: Path) -> None:
    """Arguments and columns that are ignored, and ids that are mixed up or lost."""
    from birchbark.adapters.pyterrier import BirchbarkIndex, BirchbarkReranker, BirchbarkRetriever

    retriever = BirchbarkRetriever(searcher.directory, first_stage_only=True)
    with pytest.raises(InputError, match="the column query_toks has no effect"):
        retriever.transform(TOPICS.assign(query_toks=[{"a": 1.0}] * 3))
    with pytest.raises(InputError, match="unknown argument 'fields' of index"):
        BirchbarkIndex(tmp_path / "j").index(records(), fields=["title"])
    with pytest.raises(InputError, match="an id beside its docno: found x, canoe"):
        BirchbarkIndex(tmp_path / "j").index([{**records()[0], "id": "x"}])
    with pytest.raises(InputError, match="the documents are not a list"):
        BirchbarkIndex(tmp_path / "j").index(pd.DataFrame(records()))
    with pytest.raises(InputError, match="have no effect beside a Searcher"):
        BirchbarkReranker(searcher, first_stage_scale="minmax")
    ranked = retriever.transform(TOPICS)
    reranker = BirchbarkReranker(searcher)
    with pytest.raises(InputError, match=r"qid is not an id|doc_id is not an id"):
        reranker.transform(ranked.assign(qid=[None, *ranked["qid"][1:]]))
    with pytest.raises(InputError, match="several queries have the qid 1"):
        reranker.transform(ranked.assign(qid=1))
    as_numbers = reranker.transform(ranked.assign(qid=ranked["qid"].astype(int)))
    assert ids(as_numbers) == ids(reranker.transform(ranked))
