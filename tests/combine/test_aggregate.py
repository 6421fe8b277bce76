"""Do aggregations compute what their definitions say?"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.combine import aggregate as aggregation_module
from birchbark.combine.aggregate import (
    Aggregation,
    First,
    Mean,
    Sum,
    Top,
    TopMean,
    aggregate,
    bounds_from_below,
    parse_aggregation,
    weighted_sum,
)
from birchbark.errors import InputError

SCORES = st.lists(st.floats(0, 1, width=32), max_size=12).map(lambda s: np.array(s, np.float32))
ANY_ORDER = [
    Top(),
    Top((1.0,)),
    Top((1, 0, 0.3, 0.2)),
    TopMean(),
    TopMean((1, 0, 0.3)),
    Top((1.0,)),
    Sum(),
    Mean(),
]


def score(aggregation: Aggregation, scores: np.ndarray) -> float:
    return weighted_sum(scores, aggregation.weights(scores))


@pytest.mark.parametrize("aggregation", ANY_ORDER)
@given(scores=SCORES, random=st.randoms())
def test_the_order_of_segments_does_not_matter(aggregation, scores, random) -> None:  # type: ignore[no-untyped-def]
    """Shuffled segments give bit-identical scores, except under FirstP."""
    shuffled = scores.tolist()
    random.shuffle(shuffled)
    assert score(aggregation, scores) == score(aggregation, np.array(shuffled, np.float32))


@given(SCORES)
def test_aggregations_are_what_their_names_say(scores: np.ndarray) -> None:
    """Scores equal those of numpy; a document without segments scores 0."""
    if len(scores):
        best = np.sort(scores.astype(float))[::-1]
        assert score(First(), scores) == scores[0]
        assert score(Top((1.0,)), scores) == best[0]
        assert score(Sum(), scores) == pytest.approx(best.sum())
        assert score(Mean(), scores) == pytest.approx(best.mean())
        weights = np.array([1, 0.5, 0.25])[: len(best)]
        total = (best[:3] * weights).sum()
        assert score(Top(), scores) == pytest.approx(total)
        assert score(TopMean(), scores) == pytest.approx(total / weights.sum())
    else:
        assert [score(a, scores) for a in (First(), *ANY_ORDER)] == [0.0] * (1 + len(ANY_ORDER))


def test_the_example_for_contributors_works() -> None:
    """The aggregation in docs/how-to/extend.md is complete and computes the median."""
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "extend.md").read_text("utf-8")
    known: dict[str, Any] = dict(vars(aggregation_module))
    exec(textwrap.dedent(text.split("```python\n")[1].split("```")[0]), known)
    median: Aggregation = known["Median"]()
    scores = np.array([0.5, 0.125, 0.75, 0.25], np.float32)
    for each in (scores, scores[:3], scores[:0]):
        assert score(median, each) == (np.median(each) if len(each) else 0)
        assert score(median, each) <= median.max_evidence(len(each)) <= median.max_evidence()


@given(SCORES, st.integers(0, 11))
def test_more_evidence_is_never_worse(scores: np.ndarray, where: int) -> None:
    """Raising the score of one segment never lowers the aggregated score."""
    if len(scores):
        raised = scores.copy()
        raised[where % len(scores)] = 1
        for aggregation in (First(), *ANY_ORDER[:2], *ANY_ORDER[3:]):
            assert score(aggregation, raised) >= score(aggregation, scores)


def test_the_earlier_of_equal_segments_is_shown() -> None:
    """Ties are broken by position, so the displayed evidence is stable."""
    assert Top((1.0,)).weights(np.array([0.2, 0.7, 0.7], np.float32)).tolist() == [0, 1, 0]


def test_equal_segments_keep_their_order_in_long_documents() -> None:
    """Of many segments with equal scores, the first ones get the weights."""
    weights = Top((1, 0.5, 0.25)).weights(np.array([0.5, 0.75] * 50, np.float32))
    assert {place: weights[place] for place in np.flatnonzero(weights).tolist()} == {
        1: 1,
        3: 0.5,
        5: 0.25,
    }


def test_the_highest_possible_evidence() -> None:
    """It is that of segments which all score 1; of as many as there can be, if that is unknown."""
    for aggregation in (First(), Top((1.0,)), Mean(), TopMean((2, 1))):
        assert [aggregation.max_evidence(n) for n in (0, 1, 5, None)] == [0, 1, 1, 1]
    assert [Sum().max_evidence(n) for n in (0, 1, 5, None)] == [0, 1, 5, np.inf]
    assert [Top((2, 1, 0.5)).max_evidence(n) for n in (0, 1, 2, 5)] == [0, 2, 3, 3.5]
    assert Top((2, 1, 0.5)).max_evidence() == 3.5


def test_which_aggregations_are_known_to_grow() -> None:
    """The sums and means of the highest scores, but not an aggregation of another class."""
    assert all(map(bounds_from_below, (Top(), TopMean(), Top((1.0,)), Sum())))

    class Other:
        def weights(self, scores: np.ndarray) -> np.ndarray:
            return -np.ones(len(scores))

        def max_evidence(self, segments: int | None = None) -> float:
            return 0.0

    assert not bounds_from_below(Other())


def test_top_needs_a_weight() -> None:
    """Without weights, no segment would count; they are a tuple of numbers."""
    with pytest.raises(InputError, match="found none"):
        Top(())
    for weights in (0.5, "1", ("1",)):
        for aggregation in (Top, TopMean):
            with pytest.raises(InputError, match="invalid weights for the top segments"):
                aggregation(weights)  # type: ignore[arg-type]


def test_names_of_aggregations() -> None:
    """parse_aggregation accepts the names of the command line and refuses all others."""
    assert parse_aggregation("top:1,0.5") == Top((1.0, 0.5))
    assert parse_aggregation("topmean:1,0.5") == TopMean((1.0, 0.5))
    assert [parse_aggregation(n) for n in ("first", "max", "sum", "mean")] == [
        First(),
        Top((1.0,)),
        Sum(),
        Mean(),
    ]
    for bad in ("", "top", "top:", "top:a", "best", "max:1"):
        with pytest.raises(InputError, match="unknown aggregation"):
            parse_aggregation(bad)
    with pytest.raises(InputError, match="finite numbers, each at least 0"):
        parse_aggregation("top:1,-1")


@pytest.mark.parametrize("weights", ["nan", "1,inf", "-1"])
def test_top_weights_are_finite_and_not_negative(weights: str) -> None:
    """Weights that would give NaN, infinite or negative evidence are refused."""
    with pytest.raises(InputError, match="finite numbers, each at least 0"):
        parse_aggregation(f"top:{weights}")


@given(SCORES, st.integers(0, 4))
def test_unread_segments_count_as_0(scores: np.ndarray, unread: int) -> None:
    """Evidence from some segments is that of all with 0 for the others, which never exceeds it."""
    for aggregation in ANY_ORDER:
        partial = aggregate(scores, aggregation, unread)
        complete = np.concatenate([scores, np.zeros(unread, np.float32)])
        assert partial.evidence == pytest.approx(score(aggregation, complete), abs=1e-12)
        assert len(partial.weights) == len(partial.scores) == len(scores)
        assert partial.evidence <= aggregation.max_evidence(len(complete)) + 1e-9


def test_evidence_is_kept_with_its_scores_and_weights() -> None:
    """They are those of the segments that were read, of which all are by default."""
    scores = np.array([0.5, 0.25], np.float32)
    whole, part = aggregate(scores, Mean()), aggregate(scores, Mean(), 2)
    assert (whole.evidence, part.evidence) == (0.375, 0.1875)
    assert whole.scores.tolist() == part.scores.tolist() == [0.5, 0.25]
    assert (whole.weights.tolist(), part.weights.tolist()) == ([0.5, 0.5], [0.25, 0.25])


def test_the_largest_product_is_added_first() -> None:
    """Each of the small ones is below half the precision of 1; their sum would not be."""
    scores = np.array([1e-16, 1, 1e-16], np.float32)
    assert weighted_sum(scores, np.ones(3)) == 1


def test_a_mean_may_leave_the_best_segment_out() -> None:
    """A document without another segment has no evidence then; negative weights are refused."""
    assert score(TopMean((0.0, 1.0)), np.array([0.5, 0.75], np.float32)) == 0.5
    assert score(TopMean((0.0, 1.0)), np.array([0.5], np.float32)) == 0
    with pytest.raises(InputError, match="invalid weights for the top segments"):
        parse_aggregation("topmean:1,-1")
