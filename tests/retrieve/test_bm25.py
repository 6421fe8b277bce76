"""Is the ranking that of BM25, for any division of the index, fields, matches and filters?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.layout import FieldTotals
from birchbark.index.statistics import Statistics
from birchbark.records import Document, Query
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_queries, rank_query
from birchbark.retrieve.match import AND, Match
from birchbark.text.analyzer import analyzer
from conftest import DOCUMENTS, WORDS

TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=9)


def naive_bm25(texts: list[str], query: str, k1: float, b: float) -> dict[str, float]:
    """Compute the formula of BM25's docstring in plain Python."""
    terms = analyzer("english").terms
    docs = [terms(text) for text in texts]
    lengths = [len(d) for d in docs]
    nonzero = [n for n in lengths if n]
    scores = {}
    for i, doc in enumerate(docs):
        total = 0.0
        for term in terms(query):
            df = sum(term in d for d in docs)
            tf = doc.count(term)
            if tf:
                idf = math.log(1 + (len(nonzero) - df + 0.5) / (df + 0.5))
                norm = 1 - b + b * lengths[i] / (sum(nonzero) / len(nonzero))
                total += idf * tf / (tf + k1 * norm)
        if total:
            scores[f"d{i}"] = total
    return scores


@given(
    texts=TEXTS,
    query=st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
    k1=st.sampled_from([0.0, 0.9, 1.2]),
    b=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_scores_match_the_formula(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str, k1: float, b: float
) -> None:
    """They are equal to the last bit for any division of the index into parts."""
    documents = [Document(f"d{i}", {"text": text}) for i, text in enumerate(texts)]
    where = tmp_path_factory.mktemp("bm25")
    stage = FirstStage(BM25(k1, b))
    single = rank_query(build_index(documents, where / "1"), query, stage)
    parts = rank_query(build_index(documents, where / "2", part_tokens=1), query, stage)
    assert single == parts
    expected = naive_bm25(texts, query, k1, b)
    assert dict(single) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("query", ["", "the of and", "zeppelin", "?!"])
def test_queries_without_matches_have_empty_rankings(index: Index, query: str) -> None:
    """A query without terms, of stop words only, or of unknown words is not an error."""
    assert len(rank_query(index, query)) == 0


def test_a_repeated_term_counts_repeatedly(index: Index) -> None:
    """A term that occurs twice in the query has twice the weight."""
    once, twice = (dict(rank_query(index, q)) for q in ("river", "river river"))
    assert twice == pytest.approx({d: 2 * s for d, s in once.items()})


@pytest.mark.parametrize(
    ("k1", "b"),
    [(-0.1, 0.4), (math.nan, 0.4), (math.inf, 0.4), (0.9, 1.1), (0.9, -0.1)],
)
def test_parameters_out_of_range_are_refused(k1: float, b: float) -> None:
    """Negative k1, b beyond 0 to 1, and NaN are refused."""
    with pytest.raises(InputError, match="out of range"):
        BM25(k1, b)


def test_the_line_of_norms_is_that_of_the_formula() -> None:
    """The norm is k1·(1 − b + b·|d|/avg), and no term adds more than its weight to a score."""
    statistics = Statistics(FieldTotals(documents=4, tokens=20), 9, {"bee": 1})
    of_field = BM25(2.0, 0.25).scoring({"bee": 3.0, "tree": 1.0}, statistics)
    assert (of_field.saturation, of_field.floor) == (1, 2 * 0.75)
    assert of_field.slope == pytest.approx(2 * 0.25 / 5)
    assert of_field.weights == of_field.limits
    bee, tree = math.log(1 + 3.5 / 1.5), math.log(1 + 4.5 / 0.5)
    assert of_field.weights == pytest.approx({"bee": 3 * bee, "tree": tree})
    of_all = BM25(idf_documents="all").scoring({"bee": 1.0}, statistics)
    assert of_all.weights == pytest.approx({"bee": math.log(1 + 8.5 / 1.5)})
    nothing = BM25().scoring({"bee": 1.0}, Statistics(FieldTotals(0, 0), 0))
    assert nothing.weights == pytest.approx({"bee": math.log(2)})


def test_fields_have_their_own_statistics(tmp_path: Path) -> None:
    """Scores of titles depend only on titles."""
    fields = {"title": ["title"], "text": ["text"]}
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(fields=fields))
    ranking = rank_query(index, "birch", FirstStage(fields={"title": 1}))
    assert ranking.doc_ids == ("canoe",)
    titles = [d.title for d in DOCUMENTS]
    expected = naive_bm25(titles, "birch", 0.9, 0.4)
    assert ranking.scores[0] == pytest.approx(expected["d0"])


def naive_sum(documents: list[Document], query: str, weights: dict[str, float]) -> dict[str, float]:
    """Return Σ w_j · BM25(field_j), treating each field as a separate collection."""
    total: dict[str, float] = {}
    for field, weight in weights.items():
        texts = [d.fields.get(field, "") for d in documents]
        for doc_id, score in naive_bm25(texts, query, 0.9, 0.4).items():
            total[doc_id] = total.get(doc_id, 0) + weight * score
    return total


def test_idf_can_count_documents_without_the_field(tmp_path: Path) -> None:
    """N is then the number of all documents, which scales all scores for one term alike."""
    fields = {"title": ("title",)}
    index = build_index(DOCUMENTS, tmp_path / "index", Schema("plain", fields=fields))
    query, stage = Query("1", "birch"), FirstStage(BM25(), {"title": 1.0})
    ranked = {}
    for documents in ("field", "all"):
        of_all = replace(stage, model=BM25(idf_documents=documents))
        ranked[documents] = rank_queries(index, [query], of_all, depth=5).rankings["1"]
    assert ranked["field"].doc_ids == ranked["all"].doc_ids == ("canoe",)
    df, with_title, total = 1, 4, 5  # one of DOCUMENTS has no title
    idfs = [math.log(1 + (n - df + 0.5) / (df + 0.5)) for n in (with_title, total)]
    ratio = ranked["all"].scores[0] / ranked["field"].scores[0]
    assert ratio == pytest.approx(idfs[1] / idfs[0], rel=1e-6)
    with pytest.raises(InputError, match="unknown documents for idf: expected field or all"):
        BM25(idf_documents="some")


def test_field_scores_are_summed_with_their_weights(tmp_path: Path) -> None:
    """Each field has its own lengths, frequencies and, optionally, model."""
    documents = [Document(f"d{i}", d.fields) for i, d in enumerate(DOCUMENTS)]
    fields = {"title": ["title"], "text": ["text"]}
    index = build_index(documents, tmp_path / "i", Schema(fields=fields), part_tokens=9)
    weights = {"title": 0.25, "text": 2.0}
    scores = dict(rank_query(index, "birch river steam", FirstStage(fields=weights)))
    assert scores == pytest.approx(naive_sum(documents, "birch river steam", weights), rel=1e-6)
    flat = FirstStage(fields=weights, field_models={"title": BM25(0, 0), "text": BM25()})
    assert dict(rank_query(index, "birch", flat)) != dict(
        rank_query(index, "birch", FirstStage(fields=weights))
    )


def test_invalid_fields_and_weights_are_refused(tmp_path: Path) -> None:
    """A keyword field cannot be searched; weights must be finite and not negative."""
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(keywords=["title"]))
    with pytest.raises(InputError, match=r"no field 'title' to search.*contents"):
        rank_query(index, "Bees", FirstStage(fields={"title": 1}))
    for weight in (float("nan"), float("inf"), -1.0, 1e40):
        with pytest.raises(InputError, match="field weight"):
            FirstStage(fields={"contents": weight})


def test_queries_of_ten_thousand_terms(tmp_path: Path) -> None:
    """Long queries are not truncated."""
    document = Document("long", {"text": " ".join(f"w{i}" for i in range(100_000))})
    index = build_index([*DOCUMENTS, document], tmp_path / "i")
    query = " ".join(f"w{i}" for i in range(10_000))
    assert rank_query(index, query).doc_ids == ("long",)
    assert rank_query(index, query, FirstStage(match=AND)).doc_ids == ("long",)
    assert rank_query(index, query + " river", FirstStage(match=Match(10_000))).doc_ids == ("long",)


def test_a_collection_of_one_term(tmp_path: Path) -> None:
    """Its idf is above 0, so every document is found."""
    documents = [Document(f"d{i}", {"text": "bee"}) for i in range(5)]
    index = build_index(documents, tmp_path / "i")
    assert len(rank_query(index, "bee")) == 5
