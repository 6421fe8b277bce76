"""Are the scores of each precision compared with those in float32?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import SENTENCES, Bert

from birchbark.score.precision_check import check_precisions, kendall

TEXTS = SENTENCES[:3]


def test_every_precision_is_checked(bert: Bert) -> None:
    """fp32 comes first and agrees with itself."""
    rows = list(check_precisions(bert(labels=1), {"short": [("birch", TEXTS), ("bee", TEXTS)]}))
    assert [row.name.split()[-1] for row in rows] == ["fp32", "bits", "bits", "arithmetic"]
    assert (rows[0].tau, rows[0].difference) == (1, 0)
    assert rows[2].megabytes < rows[1].megabytes < rows[0].megabytes
    for row in rows:
        assert row.speed["short"] > 0
        assert 0 <= row.difference < 0.3


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_tau_is_scipys(pairs: list[tuple[int, int]]) -> None:
    """Our Kendall's τ-b equals scipy's, with ties."""
    from scipy.stats import kendalltau

    one, other = (np.array(side, np.float32) for side in zip(*pairs, strict=True))
    expected = kendalltau(one, other).statistic
    if np.isfinite(expected):
        assert kendall(one, other) == pytest.approx(expected)
