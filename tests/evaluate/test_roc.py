"""Does AUC equal the probability that a relevant pair scores higher?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from birchbark.errors import InputError
from birchbark.evaluate.roc import auc, roc

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
