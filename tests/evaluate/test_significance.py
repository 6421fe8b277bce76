"""Do tests equal scipy's, and do intervals cover the true mean?"""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from scipy import stats

from birchbark.errors import InputError, MissingPackageError
from birchbark.evaluate import significance
from birchbark.evaluate.measures import Results
from birchbark.evaluate.significance import compare, mean_interval


def results(values: list[float], tag: str = "x") -> Results:
    by_query = {str(i): v for i, v in enumerate(values)}
    return Results(tag, {"AP": by_query}, {"AP": float(np.mean(values))})


def test_p_equals_the_paired_t_test_with_bonferroni() -> None:
    """The corrected p is p times the number of comparisons, at most 1."""
    random = np.random.default_rng(1)
    a, b, c = (random.uniform(size=30).tolist() for _ in range(3))
    found = compare(results(a), [results(b), results(c)])
    for difference, other in zip(found, (b, c), strict=True):
        expected = stats.ttest_rel(other, a).pvalue
        assert difference["AP"].p == pytest.approx(expected)
        assert difference["AP"].corrected_p == pytest.approx(min(1, 2 * expected))
        assert difference["AP"].mean == pytest.approx(np.mean(other) - np.mean(a))
        delta = np.subtract(other, a)
        assert difference["AP"].effect == pytest.approx(delta.mean() / delta.std(ddof=1))
        assert difference["AP"].low < difference["AP"].mean < difference["AP"].high


def test_the_family_is_each_system_in_each_measure() -> None:
    """Two systems in three measures are six comparisons."""
    random = np.random.default_rng(4)
    names = ("AP", "RR", "P@5")
    baseline, *systems = (
        Results(tag, {n: dict(enumerate(random.uniform(size=9))) for n in names}, {})  # type: ignore[misc]
        for tag in "abc"
    )
    differences = [d for found in compare(baseline, systems) for d in found.values()]
    assert len(differences) == 6
    assert sum((d.p or 0) < 1 / 6 for d in differences) > 0
    for difference in differences:
        assert difference.corrected_p == min(1, 6 * (difference.p or 0))


def test_a_detectable_difference_is_found_in_four_of_five_cases() -> None:
    """The power of the t-test, at the level divided by the number of comparisons, is 0.8."""
    random = np.random.default_rng(5)
    a, b = (random.uniform(size=30) for _ in range(2))
    (found,) = compare(results(a.tolist()), [results(b.tolist())], level=0.02, family=4)
    assert found["AP"].detectable
    shift = found["AP"].detectable / stats.sem(b - a)  # of t, if that is the true difference
    critical = stats.t.isf(0.02 / 4 / 2, 29)
    assert stats.nct.sf(critical, 29, shift) == pytest.approx(0.8, abs=0.02)


def test_interval_covers_the_true_mean() -> None:
    """At least 85 of 100 intervals (95 expected) cover the known mean of the samples."""
    random, covered = np.random.default_rng(3), 0
    for _ in range(100):
        delta = random.normal(0.1, 0.2, 40)
        found = compare(results([0.0] * 40), [results(delta.tolist())], resamples=300)[0]["AP"]
        covered += found.low <= 0.1 <= found.high
    assert covered >= 85


def test_the_same_seed_gives_the_same_interval() -> None:
    """Another seed gives another interval."""
    random = np.random.default_rng(2)
    a, b = (results(random.uniform(size=30).tolist()) for _ in range(2))
    assert compare(a, [b], seed=4) == compare(a, [b], seed=4)
    assert compare(a, [b], seed=4) != compare(a, [b], seed=5)


def test_a_run_does_not_differ_from_itself() -> None:
    """Without spread p is 1 and the interval is [0, 0]."""
    found = compare(results([0.1, 0.5]), [results([0.1, 0.5])])[0]["AP"]
    assert (found.mean, found.low, found.high, found.p, found.corrected_p) == (0, 0, 0, 1, 1)
    assert found.effect == 0


def test_runs_must_share_their_queries() -> None:
    """Paired tests need the same queries, at least two."""
    with pytest.raises(InputError, match="same two or more judged queries"):
        compare(results([0.1, 0.5]), [results([0.1, 0.5, 0.7])])
    with pytest.raises(InputError, match="same two or more judged queries"):
        compare(results([0.1]), [results([0.2])])


def test_runs_must_share_their_measures() -> None:
    """Those of the baseline are compared."""
    other = Results("other", {"P@5": {"0": 0.1, "1": 0.5}}, {"P@5": 0.3})
    with pytest.raises(InputError, match=r"other was not measured by AP: expected AP, found P@5"):
        compare(results([0.1, 0.5]), [other])


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons raise MissingPackageError; measures work without it."""
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPackageError, match=r"birchbark\[study\]"):
        compare(results([0.1, 0.5]), [results([0.2, 0.3])])


def test_a_constant_difference_has_no_p() -> None:
    """The t-test would divide by zero, so p and effect are None."""
    found = compare(results([0.1, 0.5]), [results([0.2, 0.6])])[0]["AP"]
    assert (found.p, found.corrected_p, found.effect) == (None, None, None)
    assert found.mean == pytest.approx(0.1)


def test_the_interval_of_a_mean() -> None:
    """BCa for distinct values, the value itself for equal values, InputError for one value."""
    low, high = mean_interval(np.random.default_rng(1).uniform(size=40))
    assert 0.3 < low < 0.5 < high < 0.7
    values = np.random.default_rng(2).normal(size=400)  # so many that it is that of the t-test
    expected = stats.t.interval(0.95, 399, values.mean(), stats.sem(values))
    assert mean_interval(values) == pytest.approx(expected, abs=0.01)  # 0.016 off with 90 %
    assert mean_interval(np.full(3, 0.2)) == mean_interval(np.full(2, 0.2)) == (0.2, 0.2)
    assert mean_interval(np.array([0.25, 0.75])) == (0.25, 0.75)
    with pytest.raises(InputError, match="too few queries for an interval"):
        mean_interval(np.ones(1))
    with pytest.raises(InputError, match="seed is out of range: expected 0 or more, found -1"):
        mean_interval(np.array([0.25, 0.75]), seed=-1)


def test_the_family_can_be_larger_than_one_comparison() -> None:
    """`family` replaces the number of comparisons in the correction."""
    random = np.random.default_rng(2)
    a, b = (results(random.uniform(size=30).tolist()) for _ in range(2))
    (alone,), (many,) = compare(a, [b]), compare(a, [b], family=7)
    assert alone["AP"].p is not None
    assert many["AP"].corrected_p == min(1, 7 * alone["AP"].p)


def test_the_level_decides_what_is_significant() -> None:
    """A corrected p below the level is significant; one that is equal to it is not."""
    random = np.random.default_rng(3)
    a, b = (results(random.uniform(low, 1, size=30).tolist()) for low in (0, 0.3))
    p = compare(a, [b])[0]["AP"].corrected_p
    assert p
    for level, significant in ((p, False), (1.01 * p, True)):
        assert compare(a, [b], level=level)[0]["AP"].significant is significant


def test_the_shares_of_queries_that_improve_and_degrade() -> None:
    """Queries with equal values count for neither share."""
    found = compare(results([0.5] * 8), [results([0.75, 0.625, 1.0, 0.5, 0.5, 0.5, 0.5, 0.25])])
    assert (found[0]["AP"].better, found[0]["AP"].worse) == (3 / 8, 1 / 8)
    (constant,) = compare(results([0.1, 0.5]), [results([0.2, 0.6])])
    assert (constant["AP"].better, constant["AP"].worse) == (1, 0)
    (same,) = compare(results([0.1, 0.5]), [results([0.1, 0.5])])
    assert (same["AP"].better, same["AP"].worse) == (0, 0)


def test_the_interval_is_that_of_the_bca_bootstrap() -> None:
    """It has the seed and the resamples that were asked for, and covers 95 %."""
    random = np.random.default_rng(6)
    a, b = random.uniform(size=20), random.uniform(size=20)
    (found,) = compare(results(a.tolist()), [results(b.tolist())], seed=7, resamples=500)
    expected = stats.bootstrap(
        (b - a,),
        np.mean,
        n_resamples=500,
        confidence_level=0.95,
        method="BCa",
        rng=np.random.default_rng(7),
    ).confidence_interval
    assert (found["AP"].low, found["AP"].high) == (expected.low, expected.high)


def test_the_interval_does_not_depend_on_the_values_drawn_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many queries need no more memory than few."""
    values = np.random.default_rng(3).uniform(size=50)
    whole = mean_interval(values)
    monkeypatch.setattr(significance, "MOST_DRAWN", 170)
    assert mean_interval(values) == whole


def test_a_constant_difference_is_its_own_interval() -> None:
    """Differences that vary by rounding alone count as constant; it is never significant."""
    baseline = [0.1, 0.2, 0.3]
    found = compare(results(baseline), [results([value + 0.3 for value in baseline])])[0]["AP"]
    assert found.low == found.mean == found.high == pytest.approx(0.3)
    assert (found.p, found.significant, found.detectable) == (None, False, None)


def test_small_differences_are_tested() -> None:
    """A difference of a millionth that varies has a p and an interval."""
    (found,) = compare(results([0.0, 0.0, 0.0]), [results([1e-6, 2e-6, 4e-6])])
    assert found["AP"].p == pytest.approx(stats.ttest_1samp([1, 2, 4], 0).pvalue)
    assert found["AP"].low < found["AP"].mean < found["AP"].high


def test_no_systems() -> None:
    """Without systems there is nothing to compare."""
    assert compare(results([0.1, 0.5]), []) == []


def test_a_detectable_difference_of_few_queries() -> None:
    """Both quantiles are of the t distribution with one degree of freedom less than queries."""
    (found,) = compare(results([0.0] * 4), [results([0.1, 0.2, 0.4, 0.1])], level=0.1, family=2)
    quantiles = stats.t.isf(0.1 / 2 / 2, 3) + stats.t.isf(0.2, 3)
    deviation = np.sqrt((0.1**2 + 0.2**2 + 0.1**2) / 3)  # the mean is 0.2
    assert found["AP"].detectable == pytest.approx(quantiles * deviation / 2)


def test_queries_are_paired_by_their_ids() -> None:
    """Two runs may have their queries in different orders."""
    first, second = ({"1": 0.25, "2": 0.5, "3": 0.75}, {"3": 1.0, "1": 0.75, "2": 0.5})
    (found,) = compare(Results("a", {"AP": first}, {}), [Results("b", {"AP": second}, {})])
    difference = found["AP"]
    assert (difference.mean, difference.better, difference.worse) == (0.25, 2 / 3, 0)
    assert difference.effect == pytest.approx(1)  # differences of 0.5, 0 and 0.25
    assert difference.p == pytest.approx(stats.ttest_1samp([0.5, 0, 0.25], 0).pvalue)
