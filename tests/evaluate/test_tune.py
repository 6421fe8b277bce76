"""Are weights tuned on other queries alone, and measured as the rest of the house measures?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.evaluate.folds import choose_by_fold, make_folds
from birchbark.evaluate.measures import measure
from birchbark.evaluate.ranks import parse_rank_measure
from birchbark.evaluate.tune import Candidates, _falling, measure_mixtures, simplex, tune
from birchbark.records import Qrels, Ranking, Run

IDS = [str(number) for number in range(23)]


@given(st.integers(2, 23), st.integers(0, 99))
def test_folds_part_the_queries(count: int, seed: int) -> None:
    """Each query in one fold, sizes within one, the same for any order of the same queries."""
    folds = make_folds(IDS, count, seed)
    assert sorted(q for fold in folds for q in fold) == sorted(IDS)
    sizes = [len(fold) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    assert folds == make_folds(reversed(IDS), count, seed)


def test_folds_depend_on_the_seed() -> None:
    """Chance is an argument."""
    assert make_folds(IDS, 5, 0) != make_folds(IDS, 5, 1)


@pytest.mark.parametrize("count", [0, 1, 24])
def test_impossible_folds_are_refused(count: int) -> None:
    """None, one, or more than there are queries."""
    with pytest.raises(InputError, match="wrong number of folds: expected 2 to 23"):
        make_folds(IDS, count, 0)


@given(st.integers(0, 2**32), st.integers(2, 6))
def test_a_fold_never_sees_its_own_queries(seed: int, count: int) -> None:
    """Whatever a fold's own queries say, its setting stays; and it is the best of the others."""
    random = np.random.default_rng(seed)
    values = random.uniform(size=(7, len(IDS)))
    folds = make_folds(IDS, count, seed)
    chosen = choose_by_fold(values, IDS, folds)
    for number, fold in enumerate(folds):
        own = np.isin(IDS, fold)
        changed = values.copy()
        changed[:, own] = random.uniform(size=(7, own.sum()))
        assert choose_by_fold(changed, IDS, folds)[number] == chosen[number]
        means = values[:, ~own].mean(axis=1)
        assert means[chosen[number]] == pytest.approx(means.max())


def test_ties_go_to_the_first_setting() -> None:
    """Rounding in the thirteenth digit decides nothing."""
    values = np.full((3, 4), 0.1)
    values[2] += 1e-15
    assert choose_by_fold(values, ["a", "b", "c", "d"], (("a", "b"), ("c", "d"))) == (0, 0)


def test_folds_must_hold_each_query_once() -> None:
    """One that is left out, or in two, would be tested on what it was tuned on."""
    for folds in ((("a",), ("b",)), (("a", "b"), ("b", "c"))):
        with pytest.raises(InputError, match="in one fold"):
            choose_by_fold(np.zeros((2, 3)), ["a", "b", "c"], folds)


def test_weights_of_a_simplex() -> None:
    """All that sum to 1, in order; (n + p - 1 over p - 1) of them."""
    assert simplex(2, 0.5).tolist() == [[0, 1], [0.5, 0.5], [1, 0]]
    assert len(simplex(3, 0.1)) == 66
    np.testing.assert_allclose(simplex(3, 0.1).sum(axis=1), 1)
    for step in (0, 0.3, 2, -1):
        with pytest.raises(InputError, match="not a step"):
            simplex(2, step)


def collection(seed: int) -> tuple[dict[str, list[Ranking]], Qrels]:
    """Two rankings a query with many ties, grades from -1 to 2; one query without candidates."""
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
@pytest.mark.parametrize("depth", [6, 100])
def test_mixtures_are_measured_as_runs_are(name: str, depth: int) -> None:
    """For each of the weights: the values of `measure` for the mixed run, ties and all."""
    rankings, qrels = collection(4)
    candidates = {query: Candidates.of(parts) for query, parts in rankings.items()}
    weights = simplex(2, 0.25)
    values = measure_mixtures(candidates, qrels, weights, name, depth)
    for setting, row in zip(weights, values, strict=True):
        mixed = {q: Ranking.of(c.doc_ids, c.scores @ setting, depth) for q, c in candidates.items()}
        expected = measure(qrels, Run(mixed), [name]).values[name]
        assert row.tolist() == pytest.approx([expected[q] for q in qrels.grades], abs=1e-12)


def test_many_settings_are_measured_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many mixtures are held at a time changes nothing."""
    rankings, qrels = collection(5)
    candidates = {query: Candidates.of(parts) for query, parts in rankings.items()}
    at_once = measure_mixtures(candidates, qrels, simplex(2, 0.1), "AP", 100)
    monkeypatch.setattr("birchbark.evaluate.tune.SCORES_AT_ONCE", 1)
    in_turn = measure_mixtures(candidates, qrels, simplex(2, 0.1), "AP", 100)
    np.testing.assert_array_equal(at_once, in_turn)


def test_tuned_weights_of_a_fold_do_not_depend_on_its_judgments() -> None:
    """End to end: other judgments for a fold's own queries, the same weights for it."""
    rankings, qrels = collection(6)
    candidates = {query: Candidates.of(parts) for query, parts in rankings.items()}
    folds, weights = make_folds(qrels.grades, 3, 0), simplex(2, 0.1)
    before = tune(candidates, qrels, weights, "AP", folds, 100)
    assert before.by_query().keys() == qrels.grades.keys()
    for number, fold in enumerate(folds):
        other = {q: {"d3": 1, "d4": 2} if q in fold else g for q, g in qrels.grades.items()}
        after = tune(candidates, Qrels(other), weights, "AP", folds, 100)
        assert after.chosen_weights(number) == before.chosen_weights(number)
        assert after.means(number)[0] == before.means(number)[0]


@pytest.mark.parametrize("name", ["Bpref", "P", "R", "nDCG@0", "AP(rel=2)", ""])
def test_measures_that_ranks_cannot_give_are_refused(name: str) -> None:
    """With those that they can."""
    with pytest.raises(InputError, match="cannot be tuned for"):
        parse_rank_measure(name)


@given(
    st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0, 3e38, 1e-40]), min_size=9, max_size=9))
)
def test_whole_numbers_sort_as_scores_do(rows: list[list[float]]) -> None:
    """Highest first, equals in their order, both zeros equal."""
    scores = np.array(rows, np.float32).reshape(len(rows), 9)
    expected = np.argsort(-scores, axis=1, kind="stable")
    np.testing.assert_array_equal(_falling(scores), expected)


def test_some_settings_are_tuned_as_if_alone() -> None:
    """The weights chosen among a part of the grid are those of tuning with that part."""
    rankings, qrels = collection(7)
    candidates = {query: Candidates.of(parts) for query, parts in rankings.items()}
    weights, folds = simplex(2, 0.1), make_folds(qrels.grades, 3, 0)
    some = weights[:, 0] >= 0.5
    part = tune(candidates, qrels, weights, "AP", folds, 100).among(some)
    alone = tune(candidates, qrels, weights[some], "AP", folds, 100)
    assert part.by_query() == alone.by_query()
    assert [part.means(n) for n in range(3)] == [alone.means(n) for n in range(3)]
