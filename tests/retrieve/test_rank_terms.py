"""Are documents ranked by the statistics that are passed in?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_bm25 import TEXTS

from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.layout import FieldTotals
from birchbark.index.statistics import Statistics
from birchbark.records import Document, Ranking
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import rank_query
from birchbark.retrieve.match import AND, OR, Selection
from birchbark.retrieve.query_terms import query_terms
from birchbark.retrieve.rank_terms import collect_statistics, rank
from conftest import WORDS


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


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_weights_out_of_range_are_refused(index: Index, weight: float) -> None:
    """Negative and infinite weights and NaN are refused."""
    with pytest.raises(InputError, match="the query: invalid weight of term 'river'"):
        rank_query(index, {"river": weight})


def test_scores_are_float32(index: Index) -> None:
    """This is the precision of trec_eval."""
    assert rank_query(index, "river").scores.dtype == np.float32


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


def test_a_term_may_be_required_without_a_weight(index: Index) -> None:
    """It chooses documents, and adds nothing to their scores."""
    fields = {"contents": (1.0, BM25())}
    own = collect_statistics(index, {"contents": BM25()}, ["birch", "river"])
    every = rank(index, {"river": 1.0}, fields, own, Selection(OR, ["river"]))
    both = rank(index, {"river": 1.0}, fields, own, Selection(AND, ["birch", "river"]))
    assert 0 < len(both) < len(every)
    scores = dict(every)
    assert dict(both) == {doc_id: scores[doc_id] for doc_id in both.doc_ids}


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
