"""Does AUC equal the probability that a relevant pair scores higher?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from birchbark.errors import InputError
from birchbark_studies.roc import auc, auc_with_interval, roc

PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40).filter(
    lambda pairs: len({relevant for _, relevant in pairs}) == 2
)


@given(PAIRS)
def test_auc_equals_mann_whitney(pairs: list[tuple[int, bool]]) -> None:
    """AUC equals the normalised Mann–Whitney U statistic; ties count half."""
    scores = np.array([score / 3 for score, _ in pairs], np.float32)
    relevant = np.array([relevant for _, relevant in pairs])
    theirs = mannwhitneyu(scores[relevant], scores[~relevant]).statistic
    assert auc(scores, relevant) == pytest.approx(theirs / relevant.sum() / (~relevant).sum())
    x, y = roc(scores, relevant)
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) >= 0).all()


def test_auc_equals_scikit_learn() -> None:
    """AUC equals scikit-learn's for random scores with ties."""
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    random = np.random.default_rng(3)
    for size in (10, 1000):
        scores = random.integers(0, size // 3, size).astype(np.float32)
        relevant = random.random(size) < 0.2
        relevant[:2] = True, False
        assert auc(scores, relevant) == pytest.approx(metrics.roc_auc_score(relevant, scores))


def test_one_class_only() -> None:
    """Without non-relevant pairs there is no curve."""
    with pytest.raises(
        InputError, match=r"needs relevant and non-relevant pairs: found 2 relevant of 2"
    ):
        auc(np.array([1.0, 2.0]), np.array([True, True]))


def test_weights_are_repetitions() -> None:
    """A pair of weight 3 counts like three equal pairs; one of weight 0 does not count."""
    random = np.random.default_rng(4)
    scores, relevant = random.integers(0, 9, 40).astype(float), random.random(40) < 0.4
    weights = random.integers(0, 4, 40)
    repeated = np.repeat(scores, weights), np.repeat(relevant, weights)
    assert auc(scores, relevant, weights.astype(float)) == pytest.approx(auc(*repeated))


def test_the_interval_resamples_queries() -> None:
    """Equal pairs of a query add nothing; more queries narrow it; it contains the AUC."""
    random = np.random.default_rng(5)

    def pairs(queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        relevant = random.random(queries * 4) < 0.4
        return random.normal(size=queries * 4) + relevant, relevant, np.arange(queries * 4) // 4

    scores, relevant, queries = pairs(20)
    area, interval = auc_with_interval(scores, relevant, queries)
    assert interval
    low, high = interval
    assert 0 < low < area == auc(scores, relevant) < high < 1
    doubled = [np.concatenate([x, x]) for x in (scores, relevant, queries)]
    assert auc_with_interval(*doubled)[1] == pytest.approx((low, high))
    narrow = auc_with_interval(*pairs(500))[1]
    assert narrow
    assert narrow[1] - narrow[0] < (high - low) / 2
    perfect = np.where(relevant, 1.0, 0.0)
    assert auc_with_interval(perfect, relevant, queries) == (1, (1, 1))
    few = np.where(queries < 4, relevant, False)
    for other in (np.zeros(80, int), queries):
        assert auc_with_interval(scores, few, other) == (auc(scores, few), None)


def test_the_mean_over_models() -> None:
    """The mean AUC of equal models is theirs, with the same interval; others change both."""
    random = np.random.default_rng(6)
    relevant, queries = random.random(120) < 0.4, np.arange(120) // 4
    scores, others = (random.normal(size=120) + relevant for _ in range(2))
    area, interval = auc_with_interval(scores, relevant, queries)
    same, same_interval = auc_with_interval(np.array([scores] * 3), relevant, queries)
    assert same == pytest.approx(area)
    assert same_interval == pytest.approx(interval)
    mean, mean_interval = auc_with_interval(np.array([scores, others]), relevant, queries)
    assert mean == pytest.approx((auc(scores, relevant) + auc(others, relevant)) / 2)
    assert mean_interval
    assert mean_interval[0] < mean < mean_interval[1]
    assert mean_interval != pytest.approx(interval)


def test_a_curve_by_hand() -> None:
    """There is a point for each distinct score; equal scores are one step of both rates."""
    scores = np.array([0.25, 1.0, 0.5, 0.5, 0.75])
    relevant = np.array([False, True, False, True, False])
    x, y = roc(scores, relevant)
    assert x.tolist() == pytest.approx([0, 0, 1 / 3, 2 / 3, 1])
    assert y.tolist() == [0, 0.5, 0.5, 1, 1]
    assert auc(scores, relevant) == pytest.approx((3 + 1.5) / (2 * 3))
    weights = np.array([2.0, 1.0, 0.0, 3.0, 2.0])
    x, y = roc(scores, relevant, weights)
    assert x.tolist() == [0, 0, 0.5, 0.5, 1]
    assert y.tolist() == [0, 0.25, 0.25, 1, 1]


def test_an_interval_needs_five_queries_with_relevant_pairs() -> None:
    """The same seed gives the same interval, another seed or number of resamples another."""
    random = np.random.default_rng(7)
    relevant, queries = np.arange(40) % 4 == 0, np.arange(40) // 4
    scores = random.normal(size=40) + relevant
    assert auc_with_interval(scores, relevant & (queries < 4), queries)[1] is None
    assert auc_with_interval(scores, relevant & (queries < 5), queries)[1] is not None
    intervals = {
        auc_with_interval(scores, relevant, queries, seed=seed, resamples=resamples)[1]
        for seed, resamples in ((1, 200), (1, 200), (2, 200), (1, 201))
    }
    assert len(intervals) == 3


def test_resamples_with_pairs_of_one_kind_count_half() -> None:
    """Here a third of them have no pair that is not relevant, and so no curve."""
    scores, relevant = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 2.5]), np.arange(6) < 5
    area, interval = auc_with_interval(scores, relevant, np.arange(6), resamples=200)
    assert area == 3 / 5
    assert interval
    assert 0 <= interval[0] < area < interval[1] <= 1
