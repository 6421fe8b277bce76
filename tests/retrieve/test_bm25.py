"""Is the ranking BM25's, whatever the index looks like on disk?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.index.build import Schema, build_index
from birchbark.index.layout import FieldTotals
from birchbark.index.reader import Index
from birchbark.index.statistics import Statistics, shared_statistics
from birchbark.index.writer import IndexWriter
from birchbark.records import Document, Ranking
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, match_ratio, rank_query
from birchbark.retrieve.match import ALL, AND, OR, Match, Selection, parse_match
from birchbark.retrieve.query import format_weighted, parse_weighted, query_terms
from birchbark.retrieve.rank import gather, rank
from birchbark.text.analyzer import analyzer
from conftest import DOCUMENTS, WORDS

TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=9)


def bm25_by_hand(texts: list[str], query: str, k1: float, b: float) -> dict[str, float]:
    """The formula of the docstring, written out once more."""
    terms = analyzer("english").terms
    docs = [terms(text) for text in texts]
    lengths = [len(d) for d in docs]
    held = [n for n in lengths if n]
    scores = {}
    for i, doc in enumerate(docs):
        total = 0.0
        for term in terms(query):
            df = sum(term in d for d in docs)
            tf = doc.count(term)
            if tf:
                idf = math.log(1 + (len(held) - df + 0.5) / (df + 0.5))
                norm = 1 - b + b * lengths[i] / (sum(held) / len(held))
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
def test_scores_are_those_of_the_formula(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str, k1: float, b: float
) -> None:
    """And to the last bit the same however the index is divided into parts."""
    documents = [Document(f"d{i}", {"text": text}) for i, text in enumerate(texts)]
    where = tmp_path_factory.mktemp("bm25")
    stage = FirstStage(BM25(k1, b))
    whole = rank_query(build_index(documents, where / "1"), query, stage)
    parts = rank_query(build_index(documents, where / "2", part_tokens=1), query, stage)
    assert whole == parts
    expected = bm25_by_hand(texts, query, k1, b)
    assert dict(whole) == pytest.approx(expected, rel=1e-6)


def test_the_cut_obeys_the_tie_rule(tmp_path: Path) -> None:
    """Of equal documents at the depth, those with the higher ids stay, in any division."""
    documents = [Document(f"d{i}", {"text": "bee"}) for i in range(9)]
    for part_tokens in (1, 100):
        index = build_index(documents, tmp_path / f"{part_tokens}", part_tokens=part_tokens)
        assert rank_query(index, "bee", depth=3).doc_ids == ("d8", "d7", "d6")


def test_deeper_rankings_begin_alike(index: Index) -> None:
    """The depth cuts a ranking; it does not change it."""
    whole = rank_query(index, "birch river iron")
    for depth in range(1, len(whole) + 1):
        assert rank_query(index, "birch river iron", depth=depth) == whole.head(depth)


def test_and_keeps_the_documents_with_all_terms(index: Index) -> None:
    """With the same scores as OR gives them."""
    either = dict(rank_query(index, "birch river"))
    both = dict(rank_query(index, "birch river", FirstStage(match=AND)))
    assert set(both) == {"canoe", "forest"}
    assert both == {doc_id: either[doc_id] for doc_id in both}


def test_and_with_an_unknown_term_matches_nothing(index: Index) -> None:
    """No document holds all of the terms."""
    assert len(rank_query(index, "birch zeppelin", FirstStage(match=AND))) == 0


@pytest.mark.parametrize("query", ["", "the of and", "zeppelin", "?!"])
def test_queries_without_matches_have_empty_rankings(index: Index, query: str) -> None:
    """No terms, stop words alone, unknown words: no result, and no error."""
    assert len(rank_query(index, query)) == 0


def test_a_term_counts_as_often_as_it_is_asked(index: Index) -> None:
    """Twice in the query is twice the weight."""
    once, twice = (dict(rank_query(index, q)) for q in ("river", "river river"))
    assert twice == pytest.approx({d: 2 * s for d, s in once.items()})


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_weights_out_of_range_are_refused(index: Index, weight: float) -> None:
    """A score must not fall because a document matches."""
    with pytest.raises(InputError, match="weight of term 'river' is out of range"):
        rank_query(index, {"river": weight})


@pytest.mark.parametrize(("k1", "b"), [(-0.1, 0.4), (math.nan, 0.4), (0.9, 1.1), (0.9, -0.1)])
def test_parameters_out_of_range_are_refused(k1: float, b: float) -> None:
    """With the range that is allowed."""
    with pytest.raises(InputError, match="out of range"):
        BM25(k1, b)


def test_fields_have_statistics_of_their_own(tmp_path: Path) -> None:
    """A title is ranked among titles."""
    fields = {"title": ["title"], "text": ["text"]}
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(fields=fields))
    found = rank_query(index, "birch", FirstStage(fields={"title": 1}))
    assert found.doc_ids == ("canoe",)
    titles = [d.title for d in DOCUMENTS]
    by_hand = bm25_by_hand(titles, "birch", 0.9, 0.4)
    assert found.scores[0] == pytest.approx(by_hand["d0"])


def test_query_terms_go_through_the_indexs_analyzer(index: Index) -> None:
    """Stemmed, stopped, counted."""
    assert query_terms(index.analyzer, "The bees' dances, dancing!") == {"bee": 1, "danc": 2}


def test_scores_are_float32(index: Index) -> None:
    """As trec_eval holds them."""
    assert rank_query(index, "river").scores.dtype == np.float32


def sum_by_hand(
    documents: list[Document], query: str, weights: dict[str, float]
) -> dict[str, float]:
    """Σ w_j · BM25(field_j), each field a collection of its own."""
    total: dict[str, float] = {}
    for field, weight in weights.items():
        texts = [d.fields.get(field, "") for d in documents]
        for doc_id, score in bm25_by_hand(texts, query, 0.9, 0.4).items():
            total[doc_id] = total.get(doc_id, 0) + weight * score
    return total


def test_field_scores_are_added_with_their_weights(tmp_path: Path) -> None:
    """Lengths and frequencies are each field's own; models may differ by field."""
    documents = [Document(f"d{i}", d.fields) for i, d in enumerate(DOCUMENTS)]
    fields = {"title": ["title"], "text": ["text"]}
    index = build_index(documents, tmp_path / "i", Schema(fields=fields), part_tokens=9)
    weights = {"title": 0.25, "text": 2.0}
    found = dict(rank_query(index, "birch river steam", FirstStage(fields=weights)))
    assert found == pytest.approx(sum_by_hand(documents, "birch river steam", weights), rel=1e-6)
    flat = FirstStage(fields=weights, field_models={"title": BM25(0, 0), "text": BM25()})
    assert dict(rank_query(index, "birch", flat)) != dict(
        rank_query(index, "birch", FirstStage(fields=weights))
    )


def test_matches_count_terms_over_all_fields(tmp_path: Path) -> None:
    """A term in the title and one in the text are two; a term in both is one."""
    fields = {"title": ["title"], "text": ["text"]}
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(fields=fields))
    both = {"title": 1.0, "text": 1.0}

    def found(query: str, match: Match) -> set[str]:
        return set(rank_query(index, query, FirstStage(fields=both, match=match)).doc_ids)

    assert found("birch bark stands", Match(2)) == {"canoe", "forest"}
    assert found("birch bark stands", Match(3)) == set()
    assert found("forest tree", AND) == {"forest"}
    assert found("birch", Match(2)) == set()
    assert found("zeppelin", ALL) == {d.doc_id for d in DOCUMENTS}
    assert found("zeppelin", OR) == set()
    assert found("", ALL) == {d.doc_id for d in DOCUMENTS}
    assert found("", AND) == set()


def test_match_ratio_is_the_share_of_candidates(index: Index) -> None:
    """Whatever the depth."""
    assert match_ratio(index, "river") == 3 / 5
    assert match_ratio(index, "birch river", FirstStage(match=AND)) == 2 / 5
    assert match_ratio(index, "", FirstStage(match=ALL)) == 1


def test_names_of_matches() -> None:
    """As the command line spells them."""
    assert [parse_match(t) for t in ("or", "and", "all", "2")] == [OR, AND, ALL, Match(2)]
    for bad in ("", "any", "-1", "1.5"):
        with pytest.raises(InputError, match="unknown match"):
            parse_match(bad)


def test_weighted_queries_come_from_outside(index: Index) -> None:
    """Printed and read back, and ranked as they stand: index terms, not words."""
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


def test_fields_and_weights_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    """A keyword field holds whole values, which no analyzed query could find."""
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(keywords=["title"]))
    with pytest.raises(InputError, match=r"no field 'title' to search.*contents"):
        rank_query(index, "Bees", FirstStage(fields={"title": 1}))
    for weight in (float("nan"), float("inf"), -1.0, 1e40):
        with pytest.raises(InputError, match="weight of a field"):
            FirstStage(fields={"contents": weight})


def test_the_same_index_is_scored_by_different_statistics(index: Index) -> None:
    """Nothing that was remembered for one set of them is used for another."""
    weights, select = {"river": 1.0}, Selection(OR, ["river"])
    short = Statistics(FieldTotals(5, 10), {"river": 3})
    fields = {"contents": (1.0, BM25())}
    usual = gather(index, {"contents": BM25()}, ["river"])
    first = rank(index, weights, fields, usual, select)
    other = rank(index, weights, fields, {"contents": short}, select)
    assert first != other
    assert rank(index, weights, fields, usual, select) == first


@given(texts=TEXTS, query=st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
def test_shards_with_shared_statistics_score_as_one(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str
) -> None:
    """To the last bit: statistics are a value that is added up and passed in."""
    where = tmp_path_factory.mktemp("shards")
    documents = [Document(f"d{i}", {"text": text}) for i, text in enumerate(texts)]
    whole = build_index(documents, where / "whole")
    halves = [documents[::2], documents[1::2]]
    shards = [build_index(half, where / f"{i}") for i, half in enumerate(halves) if half]
    weights = query_terms(whole.analyzer, query)
    shared = {"contents": shared_statistics(shards, "contents", weights)}
    assert shared == gather(whole, {"contents": BM25()}, weights)
    lists = [
        rank(s, weights, {"contents": (1, BM25())}, shared, Selection(OR, weights)) for s in shards
    ]
    pairs = [pair for ranking in lists for pair in ranking]
    merged = Ranking.of([d for d, _ in pairs], [s for _, s in pairs])
    assert merged == rank_query(whole, query)


def test_queries_of_ten_thousand_terms(tmp_path: Path) -> None:
    """Long queries are searched whole."""
    document = Document("long", {"text": " ".join(f"w{i}" for i in range(100_000))})
    index = build_index([*DOCUMENTS, document], tmp_path / "i")
    query = " ".join(f"w{i}" for i in range(10_000))
    assert rank_query(index, query).doc_ids == ("long",)
    assert rank_query(index, query, FirstStage(match=AND)).doc_ids == ("long",)
    assert rank_query(index, query + " river", FirstStage(match=Match(10_000))).doc_ids == ("long",)


def test_a_collection_of_one_term(tmp_path: Path) -> None:
    """idf stays above 0, so every document is found."""
    documents = [Document(f"d{i}", {"text": "bee"}) for i in range(5)]
    index = build_index(documents, tmp_path / "i")
    assert len(rank_query(index, "bee")) == 5


def test_filters_keep_the_documents_with_a_value(tmp_path: Path) -> None:
    """Exact values, in every part, after updates and merges; scores are those of no filter."""
    documents = [
        Document(
            f"d{i}", {"text": f"bee {WORDS[i]}", "kind": ["a b", "A b"][i % 2], "year": str(i)}
        )
        for i in range(8)
    ]
    index = build_index(documents, tmp_path / "i", Schema(keywords=["kind", "year"]), part_tokens=3)
    plain = dict(rank_query(index, "bee"))
    found = rank_query(index, "bee", FirstStage(filters={"kind": "a b"}))
    assert dict(found) == {d: s for d, s in plain.items() if d in {"d0", "d2", "d4", "d6"}}
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
