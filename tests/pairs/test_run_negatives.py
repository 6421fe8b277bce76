"""Are run negatives unjudged documents of the requested ranks?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.pairs.run_negatives import RankRange, ranked_qrels, run_negatives
from birchbark.records import Qrels, Ranking, Run

DOCS = st.sampled_from("abcdefghij")
QRELS = st.dictionaries(
    st.sampled_from("123"), st.dictionaries(DOCS, st.integers(-2, 2)), min_size=1
).map(Qrels)
RUNS = st.dictionaries(st.sampled_from("1234"), st.lists(DOCS, unique=True, max_size=10)).map(
    lambda ranked: Run({q: Ranking.of(list(d), range(len(d), 0, -1)) for q, d in ranked.items()})
)
RANKS = st.tuples(st.integers(1, 6), st.none() | st.integers(0, 6)).map(
    lambda ends: RankRange(ends[0], None if ends[1] is None else ends[0] + ends[1])
)
RUN = Run({"1": Ranking.of(list("abc"), [3, 2, 1]), "2": Ranking.of(["d"], [1])})


def within(run: Run, query_id: str, ranks: RankRange) -> set[str]:
    return {
        doc_id
        for rank, doc_id in enumerate(run.rankings[query_id].doc_ids, 1)
        if ranks.first <= rank and (ranks.last is None or rank <= ranks.last)
    }


@given(QRELS, RUNS, RANKS, st.integers(1, 5), st.integers(0, 9))
def test_negatives_are_unjudged_and_of_these_ranks(
    qrels: Qrels, run: Run, ranks: RankRange, count: int, seed: int
) -> None:
    """`count` of them are sampled, or all if there are fewer."""
    try:
        sample = run_negatives(qrels, run, ranks, count, seed)
    except InputError:
        reached = [len(r) for q, r in run.rankings.items() if q in qrels.grades]
        assert max(reached, default=0) < ranks.first
        return
    for query_id, doc_ids in sample.items():
        there = within(run, query_id, ranks) - qrels.grades[query_id].keys()
        assert set(doc_ids) <= there
        assert len(doc_ids) == len(set(doc_ids)) == min(count, len(there))
    assert sample == run_negatives(qrels, run, ranks, count, seed)
    assert sample.keys() == qrels.grades.keys() & run.rankings.keys()


@given(QRELS, RUNS, RANKS)
def test_ranked_qrels_have_the_documents_at_these_ranks(
    qrels: Qrels, run: Run, ranks: RankRange
) -> None:
    """Unjudged documents have grade 0; judged documents at other ranks are left out."""
    try:
        taken = ranked_qrels(qrels, run, ranks)
    except InputError:
        return
    for query_id in qrels.grades.keys() & run.rankings.keys():
        grades = qrels.grades[query_id]
        expected = {d: grades.get(d, 0) for d in within(run, query_id, ranks)}
        assert taken.grades.get(query_id, {}) == expected


def test_the_sample_of_a_query_does_not_depend_on_others() -> None:
    """An additional query changes no other query's negatives."""
    many = Run({q: Ranking.of(list("abcdefghij"), range(10, 0, -1)) for q in "12"})
    two = run_negatives(Qrels({"1": {"a": 1}, "2": {"a": 1}}), many, RankRange(2, 9), 3, 7)
    assert run_negatives(Qrels({"2": {"a": 1}}), many, RankRange(2, 9), 3, 7)["2"] == two["2"]
    assert two["1"] != two["2"]


@pytest.mark.parametrize("ends", [(0, 5), (-1, 5), (100, 10), (5, 4)])
def test_reversed_ranks_are_refused(ends: tuple[int, int]) -> None:
    """Ranks below 1 are refused, too."""
    with pytest.raises(InputError, match="expected FIRST-LAST with 1 ≤ FIRST ≤ LAST"):
        RankRange(*ends)


def test_ranks_beyond_the_run_are_refused() -> None:
    """The error names the number of documents that the run ranks."""
    with pytest.raises(InputError, match="at ranks 10-100, found at most 3 documents per query"):
        run_negatives(Qrels({"1": {"a": 1}, "2": {"d": 1}}), RUN, RankRange(10, 100), 1, 0)
    assert run_negatives(Qrels({"1": {}, "2": {}}), RUN, RankRange(3, 9), 2, 0) == {
        "1": ["c"],
        "2": [],
    }


def test_a_run_of_other_queries_is_refused() -> None:
    """It would provide no negatives."""
    with pytest.raises(InputError, match="ranks nothing for the judged queries: found 2 queries"):
        ranked_qrels(Qrels({"x": {"a": 1}}), RUN, RankRange())


def test_negatives_are_those_of_the_seed() -> None:
    """Of ranks 2 to 9 without a judged document; another seed gives others."""
    run = Run({"1": Ranking.of(list("abcdefghij"), range(10, 0, -1))})
    qrels, ranks = Qrels({"1": {"c": 1}}), RankRange(2, 9)
    found = [run_negatives(qrels, run, ranks, 3, seed)["1"] for seed in (0, 7, 8)]
    assert found == [["i", "h", "e"], ["h", "f", "i"], ["f", "e", "i"]]
