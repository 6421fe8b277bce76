"""Are exactly those documents contenders that can still be among the best?"""

from __future__ import annotations

import numpy as np

from birchbark.combine.contenders import contenders

BOUNDS = np.array([1.0, 0.625, 0.75, 0.5, np.inf, 0.75])
SCORES = np.array([0.625, 0.25, 9.0, 0.5, 9.0, 9.0])
FINAL = np.array([True, True, False, False, False, False])  # so 0.5 and both 9.0 do not count


def found(k: int, readable: list[bool] | None = None) -> list[int]:
    return contenders(BOUNDS, SCORES, FINAL, np.array(readable or [True] * 6), k)


def test_bounds_below_the_kth_best_final_score_are_left_out() -> None:
    """They are 0.625 and 0.25; with fewer final scores than k, each document is a contender."""
    assert found(1) == [4, 2, 5]
    assert found(2) == [4, 2, 5, 3]
    assert found(3) == [4, 2, 5, 3]


def test_documents_that_are_not_to_be_read_are_no_contenders() -> None:
    """Neither are those with a final score, whatever their bounds."""
    assert found(2, [True, True, True, True, False, False]) == [2, 3]


def test_bounds_and_scores_are_compared_as_a_run_holds_them() -> None:
    """A bound that is equal to the score in float32 may be that of a document above it."""
    bounds, scores = np.array([0.5, 0.5 - 1e-12, 0.5 - 1e-6]), np.array([0.5, 0.0, 0.0])
    final, readable = np.array([True, False, False]), np.ones(3, bool)
    assert contenders(bounds, scores, final, readable, 1) == [1]
