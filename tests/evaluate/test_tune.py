"""Are weights tuned only on the other folds, with values equal to those of `measure`?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.evaluate.folds import choose_by_fold, make_folds
from birchbark.evaluate.measures import measure
from birchbark.evaluate.rank_measures import parse_rank_measure
from birchbark.evaluate.tune import (
    Candidates,
    Tuning,
    _descending_order,
    count_steps,
    measure_mixtures,
    simplex_grid,
    tune,
)
from birchbark.records import Qrels, Ranking, Run

IDS = [str(number) for number in range(23)]


@given(st.integers(2, 23), st.integers(0, 99))
def test_folds_partition_the_queries(count: int, seed: int) -> None:
    """Each query is in one fold, sizes differ by at most one, and query order is irrelevant."""
    folds = make_folds(IDS, count, seed)
    assert sorted(q for fold in folds for q in fold) == sorted(IDS)
    sizes = [len(fold) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    assert folds == make_folds(reversed(IDS), count, seed)


def test_folds_depend_on_the_seed() -> None:
    """Another seed gives other folds."""
    assert make_folds(IDS, 5, 0) != make_folds(IDS, 5, 1)


@pytest.mark.parametrize("count", [0, 1, 24])
def test_impossible_folds_are_refused(count: int) -> None:
    """Zero, one, and more folds than queries raise InputError."""
    with pytest.raises(InputError, match="wrong number of folds: expected 2 to 23"):
        make_folds(IDS, count, 0)
    with pytest.raises(InputError, match="seed is out of range: expected 0 or more, found -1"):
        make_folds(IDS, 2, -1)


@given(st.integers(0, 2**32), st.integers(2, 6))
def test_a_fold_never_sees_its_own_queries(seed: int, count: int) -> None:
    """A fold's weighting does not depend on its own queries, and is the best on the others."""
    random = np.random.default_rng(seed)
    values = random.uniform(size=(7, len(IDS)))
    folds = make_folds(IDS, count, seed)
    chosen = choose_by_fold(values, IDS, folds)
    for number, fold in enumerate(folds):
        in_fold = np.isin(IDS, fold)
        changed = values.copy()
        changed[:, in_fold] = random.uniform(size=(7, in_fold.sum()))
        assert choose_by_fold(changed, IDS, folds)[number] == chosen[number]
        means = values[:, ~in_fold].mean(axis=1)
        assert means[chosen[number]] == pytest.approx(means.max())


def test_ties_go_to_the_first_weighting() -> None:
    """Differences in the thirteenth decimal count as ties."""
    values = np.full((3, 4), 0.1)
    values[2] += 4e-13
    folds = (("a", "b"), ("c", "d"))
    assert choose_by_fold(values, ["a", "b", "c", "d"], folds) == (0, 0)
    values[2] += 2e-13  # 0.1000000000006 is rounded up
    assert choose_by_fold(values, ["a", "b", "c", "d"], folds) == (2, 2)


def test_a_fold_of_all_queries_is_refused() -> None:
    """No query is left to choose by."""
    with pytest.raises(InputError, match="all queries are in one fold"):
        choose_by_fold(np.array([[0.0, 0.0], [1.0, 1.0]]), ["a", "b"], (("a", "b"), ()))


def test_folds_must_hold_each_query_once() -> None:
    """A query in no fold or in two folds raises InputError."""
    for folds in ((("a",), ("b",)), (("a", "b"), ("b", "c"))):
        with pytest.raises(InputError, match="in exactly one fold"):
            choose_by_fold(np.zeros((2, 3)), ["a", "b", "c"], folds)


def test_weights_of_a_simplex() -> None:
    """All weightings that sum to 1 are listed once, in lexicographic order."""
    assert simplex_grid(2, 0.5).tolist() == [[0, 1], [0.5, 0.5], [1, 0]]
    assert len(simplex_grid(3, 0.1)) == 66
    np.testing.assert_allclose(simplex_grid(3, 0.1).sum(axis=1), 1)
    for step in (0, 0.3, 2, -1):
        with pytest.raises(InputError, match="invalid step"):
            simplex_grid(2, step)


def collection(seed: int) -> tuple[dict[str, list[Ranking]], Qrels]:
    """Two rankings per query with many ties, grades from -1 to 2; one query has no candidates."""
    random = np.random.default_rng(seed)
    rankings: dict[str, list[Ranking]] = {"none": [Ranking.of([], []), Ranking.of([], [])]}
    grades: dict[str, dict[str, int]] = {"none": {"d1": 1}, "absent": {"d1": 1}}
    for query in "abcde":
        ids = [f"d{n}" for n in random.permutation(30)[:20]]
        rankings[query] = [
            Ranking.of(ids[:15], random.integers(0, 4, 15)),
            Ranking.of(ids[8:], random.integers(0, 4, 12) / 3),
        ]
        judged = random.permutation(30)[:12]
        grades[query] = {f"d{n}": int(random.integers(-1, 3)) for n in judged}
    grades["e"] = dict.fromkeys(grades["e"], 0)  # nothing relevant
    return rankings, Qrels(grades)


@pytest.mark.parametrize("name", ["AP", "AP@5", "nDCG", "nDCG@3", "P@4", "R@4", "RR", "RR@2"])
@pytest.mark.parametrize(("depth", "relevant"), [(6, 1), (100, 1), (100, 2)])
def test_mixtures_are_evaluated_like_runs(name: str, depth: int, relevant: int) -> None:
    """For all weightings the values equal those of `measure` on the combined run, with ties."""
    rankings, qrels = collection(4)
    qrels = replace(qrels, relevant=relevant)
    candidates = {query: Candidates.of(parts) for query, parts in rankings.items()}
    weights = simplex_grid(2, 0.25)
    values = measure_mixtures(candidates, qrels, weights, name, depth)
    for weighting, row in zip(weights, values, strict=True):
        mixed = {
            q: Ranking.of(c.doc_ids, c.scores @ weighting, depth) for q, c in candidates.items()
        }
        expected = measure(qrels, Run(mixed), [name]).values[name]
        assert row.tolist() == pytest.approx([expected[q] for q in qrels.grades], abs=1e-12)


def test_chunk_size_does_not_change_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluating one weighting at a time gives the same values."""
    rankings, qrels = collection(5)
    candidates = {query: Candidates.of(parts) for query, parts in rankings.items()}
    at_once = measure_mixtures(candidates, qrels, simplex_grid(2, 0.1), "AP", 100)
    monkeypatch.setattr("birchbark.evaluate.tune.CHUNK_SCORES", 1)
    in_turn = measure_mixtures(candidates, qrels, simplex_grid(2, 0.1), "AP", 100)
    np.testing.assert_array_equal(at_once, in_turn)


def test_tuned_weights_of_a_fold_do_not_depend_on_its_judgments() -> None:
    """Changing the judgments of a fold's own queries leaves its weights unchanged."""
    rankings, qrels = collection(6)
    candidates = {query: Candidates.of(parts) for query, parts in rankings.items()}
    folds, weights = make_folds(qrels.grades, 3, 0), simplex_grid(2, 0.1)
    before = tune(candidates, qrels, weights, "AP", folds, 100)
    assert before.by_query().keys() == qrels.grades.keys()
    for number, fold in enumerate(folds):
        other = {q: {"d3": 1, "d4": 2} if q in fold else g for q, g in qrels.grades.items()}
        after = tune(candidates, Qrels(other), weights, "AP", folds, 100)
        assert after.chosen_weights(number) == before.chosen_weights(number)
        assert after.means(number)[0] == before.means(number)[0]


@pytest.mark.parametrize("name", ["Bpref", "P", "R", "nDCG@0", "AP(rel=2)", ""])
def test_measures_that_ranks_cannot_give_are_refused(name: str) -> None:
    """Measures that ranks alone do not determine raise InputError."""
    with pytest.raises(InputError, match="cannot tune for"):
        parse_rank_measure(name)


@given(
    st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0, 3e38, 1e-40]), min_size=9, max_size=9))
)
def test_integer_sort_equals_stable_argsort(rows: list[list[float]]) -> None:
    """The highest score comes first, ties keep their order, and 0.0 equals -0.0."""
    scores = np.array(rows, np.float32).reshape(len(rows), 9)
    expected = np.argsort(-scores, axis=1, kind="stable")
    np.testing.assert_array_equal(_descending_order(scores), expected)


def test_restricted_tuning_equals_tuning_the_subset() -> None:
    """Restricting a tuning chooses the same weights as tuning with only these weightings."""
    rankings, qrels = collection(7)
    candidates = {query: Candidates.of(parts) for query, parts in rankings.items()}
    weights, folds = simplex_grid(2, 0.1), make_folds(qrels.grades, 3, 0)
    allowed = weights[:, 0] >= 0.5
    part = tune(candidates, qrels, weights, "AP", folds, 100).restrict(allowed)
    alone = tune(candidates, qrels, weights[allowed], "AP", folds, 100)
    assert part.by_query() == alone.by_query()
    assert [part.means(n) for n in range(3)] == [alone.means(n) for n in range(3)]


def test_steps_that_fit_into_1() -> None:
    """A step of 1 is the largest, and one that misses 1 by rounding alone fits."""
    assert [count_steps(step) for step in (1, 0.5, 0.1, 1 / 3, 1 / 49)] == [1, 2, 10, 3, 49]
    for step in (1.5, 0.4, 0.1001, float("nan"), 1e-320):
        with pytest.raises(InputError, match="invalid step: expected 1 divided by a whole number"):
            count_steps(step)


def test_a_simplex_in_order() -> None:
    """Weightings of three components by hand; one component has all the weight."""
    expected = [[0, 0, 2], [0, 1, 1], [0, 2, 0], [1, 0, 1], [1, 1, 0], [2, 0, 0]]
    assert (2 * simplex_grid(3, 0.5)).tolist() == expected
    assert simplex_grid(1, 0.25).tolist() == [[1]]
    with pytest.raises(InputError, match="found 10,666,600"):
        simplex_grid(4, 1 / 398)


def test_candidates_of_rankings() -> None:
    """Documents are in descending order of their ids, and have 0 where they are not ranked."""
    rankings = [Ranking.of(["b", "a"], [2, 1]), Ranking.of(["c", "a"], [8, 4])]
    candidates = Candidates.of(rankings)
    assert candidates.doc_ids == ("c", "b", "a")
    assert candidates.scores.tolist() == [[0, 8], [2, 0], [1, 4]]
    assert candidates.below == ()


def test_documents_below_the_candidates_have_the_next_ranks() -> None:
    """Their order is kept, and they are cut off at the same depth."""
    candidates = {"1": Candidates(("b", "a"), np.array([[1.0, 0], [0, 1]]), ("d", "c"))}
    weights = np.array([[1.0, 0], [0, 1]])
    for relevant, depth, expected in (
        ("a", 9, [1 / 2, 1]),
        ("d", 9, [1 / 3, 1 / 3]),
        ("c", 9, [1 / 4, 1 / 4]),
        ("c", 4, [1 / 4, 1 / 4]),
        ("c", 3, [0, 0]),
        ("e", 9, [0, 0]),
    ):
        qrels = Qrels({"1": {relevant: 1}})
        values = measure_mixtures(candidates, qrels, weights, "RR", depth)
        assert values.tolist() == [[value] for value in expected]
    qrels = Qrels({"1": {"a": 1, "c": 1, "e": 1}, "2": {"a": 1}})
    values = measure_mixtures(candidates, qrels, weights, "AP", 9)
    assert values.tolist() == pytest.approx(np.array([[(1 / 2 + 2 / 4) / 3, 0], [1.5 / 3, 0]]))


def test_scores_are_compared_in_float32() -> None:
    """Scores that differ less are ties, in which the higher id is first, as in a run."""
    candidates = {"1": Candidates(("b", "a"), np.array([[0.5], [0.5 + 1e-9]]))}
    qrels = Qrels({"1": {"a": 1}})
    assert measure_mixtures(candidates, qrels, np.ones((1, 1)), "RR", 9).tolist() == [[0.5]]


def test_means_of_a_fold() -> None:
    """The first is over the queries of other folds, the second over its own."""
    values = np.array([[0.0, 0.5, 1.0, 0.25], [1.0, 0.5, 0.0, 0.75]])
    folds = (("c", "a"), ("b",), ("d",))
    chosen = choose_by_fold(values, ("a", "b", "c", "d"), folds)
    assert chosen == (1, 1, 0)
    tuning = Tuning(np.array([[0.25, 0.75], [1, 0]]), values, ("a", "b", "c", "d"), folds, chosen)
    assert tuning.means(0) == (0.625, 0.5)
    assert tuning.means(1) == (1.75 / 3, 0.5)
    assert tuning.means(2) == (0.5, 0.25)
    first, second = (0.25, 0.75), (1.0, 0.0)
    assert tuning.by_query() == {"a": second, "b": second, "c": second, "d": first}
    restricted = tuning.restrict(np.array([False, True]))
    assert restricted.weights.tolist() == [[1, 0]]
    assert restricted.values.tolist() == [[1.0, 0.5, 0.0, 0.75]]
    assert restricted.chosen == (0, 0, 0)


def test_the_folds_of_a_seed() -> None:
    """Ids are sorted within a fold, and an id that is given twice is one query."""
    folds = make_folds(["b", "a", "c", "a", "b"], 2, 0)
    assert [len(fold) for fold in folds] == [2, 1]
    assert sorted(q for fold in folds for q in fold) == ["a", "b", "c"]
    assert all(list(fold) == sorted(fold) for seed in range(9) for fold in make_folds(IDS, 3, seed))
    with pytest.raises(InputError, match="wrong number of folds: expected two queries, found 2"):
        make_folds(["a"], 2, 0)
    assert len(make_folds(["a", "b"], 2, 0)) == 2


def test_the_kind_and_the_cutoff_of_a_measure() -> None:
    """Without a cutoff it is infinite."""
    found = [parse_rank_measure(name) for name in ("AP", "nDCG@10", "P@5", "R@100", "RR@1")]
    assert found == [("AP", np.inf), ("nDCG", 10), ("P", 5), ("R", 100), ("RR", 1)]
