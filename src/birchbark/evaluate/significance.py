"""Is the difference between two runs significant? Paired t-test, Bonferroni, BCa bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.errors import InputError, MissingPackageError
from birchbark.evaluate.folds import random_numbers
from birchbark.evaluate.measures import Results

RESAMPLES = 10_000
MOST_DRAWN = 1_000_000  # values in memory at once
CONFIDENCE = 0.95
POWER = 0.8  # the probability with which a difference that is `detectable` would be significant
NO_SPREAD = 1e-12  # values within a smaller range count as equal


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a system and a baseline in one measure, over the same queries.

    Attributes:
        mean: The mean of system minus baseline.
        low, high: The 95 % interval of the mean (BCa bootstrap over queries).
        p: The p-value of a two-sided paired t-test; None if all queries differ by the same amount
            other than 0, for which the test is undefined.
        corrected_p: The p-value with Bonferroni correction for all comparisons made together, at
            most 1; None if p is None.
        effect: Cohen's d for paired samples, the mean divided by the standard deviation of the
            differences; None if p is None.
        better, worse: The shares of queries that improve and that degrade.
        significant: Whether corrected_p is below the level of the test; tables then show a †.
        detectable: The smallest true difference that this test would find significant with a
            probability of 80 %, given as many queries and differences that vary as much; None (the
            default) if they do not vary.
    """

    mean: float
    low: float
    high: float
    p: float | None
    corrected_p: float | None
    effect: float | None
    better: float
    worse: float
    significant: bool
    detectable: float | None = None


def compare(
    baseline: Results,
    systems: Sequence[Results],
    *,
    seed: int = defaults.SEED,
    resamples: int = RESAMPLES,
    family: int | None = None,
    level: float = defaults.SIGNIFICANCE_LEVEL,
) -> list[Mapping[str, Difference]]:
    """Compare each of `systems` with `baseline`. Returns measure → Difference for each system.

    seed: the seed for the bootstrap.
    resamples: the number of bootstrap resamples.
    family: the number of comparisons to correct for, if more are made together than in this call;
        by default the number of systems times the number of measures.
    level: a difference is significant if its corrected p is below it, 0 to 1.
    Raises MissingPackageError without scipy (extra `study`). Raises InputError unless all results
    cover the same two or more queries, and have the measures of the baseline.
    """
    if not systems:
        return []
    family = family or len(systems) * len(baseline.values)
    return [
        {
            name: _difference(baseline, system, name, family, level, seed, resamples)
            for name in baseline.values
        }
        for system in systems
    ]


def _difference(
    baseline: Results,
    system: Results,
    name: str,
    family: int,
    level: float,
    seed: int,
    resamples: int,
) -> Difference:
    queries = baseline.values[name]
    if name not in system.values:
        raise InputError(
            f"{system.tag} was not measured by {name}",
            wanted=", ".join(baseline.values),
            found=", ".join(system.values),
        )
    if system.values[name].keys() != queries.keys() or len(queries) < 2:
        raise InputError("runs can only be compared over the same two or more judged queries")
    delta = np.array([system.values[name][q] - queries[q] for q in queries])
    better, worse = float(np.mean(delta > 0)), float(np.mean(delta < 0))
    if np.ptp(delta) < NO_SPREAD:  # neither test nor bootstrap is defined
        constant = float(delta[0])
        p = 1.0 if constant == 0 else None
        effect = 0.0 if constant == 0 else None
        return Difference(constant, constant, constant, p, p, effect, better, worse, False)
    p = float(_stats().ttest_1samp(delta, 0).pvalue)
    low, high = mean_interval(delta, seed=seed, resamples=resamples)
    mean, corrected = float(delta.mean()), min(1.0, p * family)
    deviation = float(delta.std(ddof=1))
    return Difference(
        mean=mean,
        low=low,
        high=high,
        p=p,
        corrected_p=corrected,
        effect=mean / deviation,
        better=better,
        worse=worse,
        significant=corrected < level,
        detectable=_detectable(deviation, len(delta), level / family),
    )


def _detectable(deviation: float, count: int, level: float) -> float:
    """Return the smallest difference that a two-sided paired t-test finds with probability POWER.

    deviation: the standard deviation of the differences of `count` queries. It is the usual
    approximation of power by two quantiles of the t distribution.
    """
    t = _stats().t
    quantiles = t.isf(level / 2, count - 1) + t.isf(1 - POWER, count - 1)
    return float(quantiles * deviation / np.sqrt(count))


def mean_interval(
    values: NDArray[np.float64], *, seed: int = defaults.SEED, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the 95 % interval of the mean of `values` (n,), by the BCa bootstrap.

    If all values are equal, both bounds are that value. Raises InputError for fewer than two
    values, and MissingPackageError without scipy.
    """
    if len(values) > 1 and np.ptp(values) < NO_SPREAD:
        return float(values[0]), float(values[0])
    return bootstrap_interval(values, np.mean, seed=seed, resamples=resamples)


def bootstrap_interval(
    values: NDArray[Any],
    statistic: Callable[..., Any],
    *,
    seed: int = defaults.SEED,
    resamples: int = RESAMPLES,
    **options: Any,
) -> tuple[float, float]:
    """Return the 95 % interval of a statistic of `values` (n,), by the BCa bootstrap over them.

    options: of scipy's bootstrap. Raises InputError for fewer than two values and for a seed below
    0, and MissingPackageError without scipy.
    """
    if len(values) < 2:
        raise InputError(
            "too few queries for an interval", wanted="two or more", found=str(len(values))
        )
    interval = (
        _stats()
        .bootstrap(
            (values,),
            statistic,
            n_resamples=resamples,
            confidence_level=CONFIDENCE,
            method="BCa",
            rng=random_numbers(seed),
            batch=max(1, MOST_DRAWN // len(values)),
            **options,
        )
        .confidence_interval
    )
    return float(interval.low), float(interval.high)


def _stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise MissingPackageError(
            "tests and intervals need scipy", remedy="pip install 'birchbark[study]'"
        ) from None
    return stats
