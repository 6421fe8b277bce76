"""Is the ranking BM25's, whatever the index looks like on disk?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.index.build import build_index
from birchbark.index.reader import Index
from birchbark.records import Document
from birchbark.retrieve.bm25 import BM25, Match, rank, term_weights
from birchbark.retrieve.first_stage import FirstStage, rank_query
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
    both = dict(rank_query(index, "birch river", FirstStage(match=Match.AND)))
    assert set(both) == {"canoe", "forest"}
    assert both == {doc_id: either[doc_id] for doc_id in both}


def test_and_with_an_unknown_term_matches_nothing(index: Index) -> None:
    """No document holds all of the terms."""
    assert len(rank_query(index, "birch zeppelin", FirstStage(match=Match.AND))) == 0


@pytest.mark.parametrize("query", ["", "the of and", "zeppelin", "?!"])
def test_queries_without_matches_have_empty_rankings(index: Index, query: str) -> None:
    """No terms, stop words alone, unknown words: no result, and no error."""
    assert len(rank_query(index, query)) == 0


def test_a_term_counts_as_often_as_it_is_asked(index: Index) -> None:
    """Twice in the query is twice the weight."""
    once, twice = (dict(rank_query(index, q)) for q in ("river", "river river"))
    assert twice == pytest.approx({d: 2 * s for d, s in once.items()})


def test_weights_must_not_be_negative(index: Index) -> None:
    """A score must not fall because a document matches."""
    with pytest.raises(InputError, match="negative weight"):
        rank(index, {"river": -1.0})


@pytest.mark.parametrize(("k1", "b"), [(-0.1, 0.4), (math.nan, 0.4), (0.9, 1.1), (0.9, -0.1)])
def test_parameters_out_of_range_are_refused(k1: float, b: float) -> None:
    """With the range that is allowed."""
    with pytest.raises(InputError, match="out of range"):
        BM25(k1, b)


def test_fields_have_statistics_of_their_own(tmp_path: Path) -> None:
    """A title is ranked among titles."""
    fields = {"title": ["title"], "text": ["text"]}
    index = build_index(DOCUMENTS, tmp_path / "i", fields=fields)
    found = rank_query(index, "birch", FirstStage(field="title"))
    assert found.doc_ids == ("canoe",)
    titles = [d.title for d in DOCUMENTS]
    by_hand = bm25_by_hand(titles, "birch", 0.9, 0.4)
    assert found.scores[0] == pytest.approx(by_hand["d0"])


def test_query_terms_go_through_the_indexs_analyzer(index: Index) -> None:
    """Stemmed, stopped, counted."""
    assert term_weights(index, "The bees' dances, dancing!") == {"bee": 1, "danc": 2}


def test_scores_are_float32(index: Index) -> None:
    """As trec_eval holds them."""
    assert rank_query(index, "river").scores.dtype == np.float32
