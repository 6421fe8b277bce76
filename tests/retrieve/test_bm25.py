"""Is the ranking that of BM25, for any division of the index, fields, matches and filters?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.layout import FieldTotals
from birchbark.index.statistics import Statistics
from birchbark.index.writer import IndexWriter
from birchbark.records import Document, Query, Ranking
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, match_ratio, rank_queries, rank_query
from birchbark.retrieve.match import ALL, AND, OR, Match, Selection, parse_match
from birchbark.retrieve.query_terms import format_weighted, parse_weighted, query_terms
from birchbark.retrieve.rank_terms import collect_statistics, rank
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


def test_the_depth_follows_the_tie_rule(tmp_path: Path) -> None:
    """Of documents with equal scores, the highest ids are ranked, for any division."""
    documents = [Document(f"d{i}", {"text": "bee"}) for i in range(9)]
    for part_tokens in (1, 100):
        index = build_index(documents, tmp_path / f"{part_tokens}", part_tokens=part_tokens)
        assert rank_query(index, "bee", depth=3).doc_ids == ("d8", "d7", "d6")


def test_shallower_rankings_are_prefixes(index: Index) -> None:
    """A ranking of any depth is a prefix of the full ranking."""
    full = rank_query(index, "birch river iron")
    for depth in range(1, len(full) + 1):
        assert rank_query(index, "birch river iron", depth=depth) == full.head(depth)


def test_and_requires_all_terms(index: Index) -> None:
    """The scores are those of OR."""
    either = dict(rank_query(index, "birch river"))
    both = dict(rank_query(index, "birch river", FirstStage(match=AND)))
    assert set(both) == {"canoe", "forest"}
    assert both == {doc_id: either[doc_id] for doc_id in both}


def test_and_with_an_unknown_term_matches_nothing(index: Index) -> None:
    """No document contains all of the terms."""
    assert len(rank_query(index, "birch zeppelin", FirstStage(match=AND))) == 0


@pytest.mark.parametrize("query", ["", "the of and", "zeppelin", "?!"])
def test_queries_without_matches_have_empty_rankings(index: Index, query: str) -> None:
    """A query without terms, of stop words only, or of unknown words is not an error."""
    assert len(rank_query(index, query)) == 0


def test_a_repeated_term_counts_repeatedly(index: Index) -> None:
    """A term that occurs twice in the query has twice the weight."""
    once, twice = (dict(rank_query(index, q)) for q in ("river", "river river"))
    assert twice == pytest.approx({d: 2 * s for d, s in once.items()})


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_weights_out_of_range_are_refused(index: Index, weight: float) -> None:
    """Negative and infinite weights and NaN are refused."""
    with pytest.raises(InputError, match="weight of term 'river' is out of range"):
        rank_query(index, {"river": weight})


@pytest.mark.parametrize(("k1", "b"), [(-0.1, 0.4), (math.nan, 0.4), (0.9, 1.1), (0.9, -0.1)])
def test_parameters_out_of_range_are_refused(k1: float, b: float) -> None:
    """Negative k1, b beyond 0 to 1, and NaN are refused."""
    with pytest.raises(InputError, match="out of range"):
        BM25(k1, b)


def test_fields_have_their_own_statistics(tmp_path: Path) -> None:
    """Scores of titles depend only on titles."""
    fields = {"title": ["title"], "text": ["text"]}
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(fields=fields))
    ranking = rank_query(index, "birch", FirstStage(fields={"title": 1}))
    assert ranking.doc_ids == ("canoe",)
    titles = [d.title for d in DOCUMENTS]
    expected = naive_bm25(titles, "birch", 0.9, 0.4)
    assert ranking.scores[0] == pytest.approx(expected["d0"])


def test_query_terms_use_the_analyzer_of_the_index(index: Index) -> None:
    """Words are stemmed and counted, stop words removed."""
    assert query_terms(index.analyzer, "The bees' dances, dancing!") == {"bee": 1, "danc": 2}


def test_scores_are_float32(index: Index) -> None:
    """This is the precision of trec_eval."""
    assert rank_query(index, "river").scores.dtype == np.float32


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


def test_matches_count_terms_in_all_fields(tmp_path: Path) -> None:
    """A term in the title and another in the text count as two, one in both as one."""
    fields = {"title": ["title"], "text": ["text"]}
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(fields=fields))
    both = {"title": 1.0, "text": 1.0}

    def matches(query: str, match: Match) -> set[str]:
        return set(rank_query(index, query, FirstStage(fields=both, match=match)).doc_ids)

    assert matches("birch bark stands", Match(2)) == {"canoe", "forest"}
    assert matches("birch bark stands", Match(3)) == set()
    assert matches("forest tree", AND) == {"forest"}
    assert matches("birch", Match(2)) == set()
    assert matches("zeppelin", ALL) == {d.doc_id for d in DOCUMENTS}
    assert matches("zeppelin", OR) == set()
    assert matches("", ALL) == {d.doc_id for d in DOCUMENTS}
    assert matches("", AND) == set()


def test_match_ratio_is_the_share_of_candidates(index: Index) -> None:
    """It is relative to all documents and does not depend on the depth."""
    assert match_ratio(index, "river") == 3 / 5
    assert match_ratio(index, "birch river", FirstStage(match=AND)) == 2 / 5
    assert match_ratio(index, "", FirstStage(match=ALL)) == 1


def test_matches_are_parsed() -> None:
    """The names are those of the command line."""
    assert [parse_match(t) for t in ("or", "and", "all", "2")] == [OR, AND, ALL, Match(2)]
    for bad in ("", "any", "-1", "1.5"):
        with pytest.raises(InputError, match="unknown match"):
            parse_match(bad)


def test_weighted_queries_round_trip(index: Index) -> None:
    """They are formatted and parsed, and ranked as index terms, without analysis."""
    weights = {"birch": 0.5, "river": 0.25, "a^b": 1e-9}
    assert parse_weighted(format_weighted(weights)) == weights
    assert format_weighted(weights).startswith("birch^0.5 river^0.25")
    plain, halved = (
        rank_query(index, {"birch": 2.0, "river": 2.0}),
        rank_query(index, "birch river"),
    )
    assert dict(plain) == pytest.approx({d: 2 * s for d, s in halved})
    for bad in ("birch", "birch^", "^1", "birch^x"):
        with pytest.raises(InputError, match="not a weighted term"):
            parse_weighted(bad)


def test_invalid_fields_and_weights_are_refused(tmp_path: Path) -> None:
    """A keyword field cannot be searched; weights must be finite and not negative."""
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(keywords=["title"]))
    with pytest.raises(InputError, match=r"no field 'title' to search.*contents"):
        rank_query(index, "Bees", FirstStage(fields={"title": 1}))
    for weight in (float("nan"), float("inf"), -1.0, 1e40):
        with pytest.raises(InputError, match="field weight"):
            FirstStage(fields={"contents": weight})


def test_an_index_can_be_scored_with_different_statistics(index: Index) -> None:
    """Values cached for one set of statistics are not used for another."""
    weights, select = {"river": 1.0}, Selection(OR, ["river"])
    short = Statistics(FieldTotals(5, 10), 5, {"river": 3})
    fields = {"contents": (1.0, BM25())}
    own = collect_statistics(index, {"contents": BM25()}, ["river"])
    first = rank(index, weights, fields, own, select)
    other = rank(index, weights, fields, {"contents": short}, select)
    assert first != other
    assert rank(index, weights, fields, own, select) == first


@given(texts=TEXTS, query=st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
def test_shards_with_statistics_of_all_score_as_one_index(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str
) -> None:
    """Scores agree to the last bit if the statistics of the whole index are passed in."""
    where = tmp_path_factory.mktemp("shards")
    documents = [Document(f"d{i}", {"text": text}) for i, text in enumerate(texts)]
    single = build_index(documents, where / "single")
    halves = [documents[::2], documents[1::2]]
    shards = [build_index(half, where / f"{i}") for i, half in enumerate(halves) if half]
    weights = query_terms(single.analyzer, query)
    of_all = collect_statistics(single, {"contents": BM25()}, weights)
    lists = [
        rank(s, weights, {"contents": (1, BM25())}, of_all, Selection(OR, weights)) for s in shards
    ]
    pairs = [pair for ranking in lists for pair in ranking]
    merged = Ranking.of([d for d, _ in pairs], [s for _, s in pairs])
    assert merged == rank_query(single, query)


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


def test_filters_require_a_value(tmp_path: Path) -> None:
    """Exact values, in every part, also after updates and merges; scores do not change."""
    documents = [
        Document(
            f"d{i}", {"text": f"bee {WORDS[i]}", "kind": ["a b", "A b"][i % 2], "year": str(i)}
        )
        for i in range(8)
    ]
    index = build_index(documents, tmp_path / "i", Schema(keywords=["kind", "year"]), part_tokens=3)
    plain = dict(rank_query(index, "bee"))
    ranking = rank_query(index, "bee", FirstStage(filters={"kind": "a b"}))
    assert dict(ranking) == {d: s for d, s in plain.items() if d in {"d0", "d2", "d4", "d6"}}
    both = FirstStage(filters={"kind": "a b", "year": "4"}, match=ALL)
    assert rank_query(index, "zeppelin", both).doc_ids == ("d4",)
    assert match_ratio(index, "bee", FirstStage(filters={"kind": "A b"})) == 0.5
    assert len(rank_query(index, "bee", FirstStage(filters={"kind": "a"}))) == 0
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(Document("d0", {"text": "bee", "kind": "A b"}))
        writer.delete("d2")
    changed = rank_query(Index(tmp_path / "i"), "bee", FirstStage(filters={"kind": "a b"}))
    assert set(changed.doc_ids) == {"d4", "d6"}
    with IndexWriter(tmp_path / "i") as writer:
        writer.merge()
    changed = rank_query(Index(tmp_path / "i"), "bee", FirstStage(filters={"kind": "A b"}))
    assert set(changed.doc_ids) == {"d0", "d1", "d3", "d5", "d7"}
    with pytest.raises(InputError, match=r"no field 'text' to filter by.*one of kind, year"):
        rank_query(index, "bee", FirstStage(filters={"text": "bee"}))
    with pytest.raises(InputError, match="'contents' is both searched and filtered by"):
        build_index(documents, tmp_path / "j", Schema(keywords=["contents"]))
