"""Can the difference between two runs be trusted? Paired t-test, Bonferroni, bootstrap interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError, MissingPackageError
from birchbark.evaluate.measures import Results

RESAMPLES = 10_000
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
NO_SPREAD = 1e-12


@dataclass(frozen=True, slots=True)
class Difference:
    """System minus baseline on one measure, over the same queries.

    low, high: 95 % interval of the mean difference (BCa bootstrap over queries). p: two-sided
    paired t-test; None where it is not defined, as all queries differ by the same. corrected_p:
    Bonferroni over all comparisons made together, 1 at most. effect: the mean in standard
    deviations of the queries' differences (Cohen's d of pairs); None where p is. better, worse:
    share of queries that gained and lost.
    """

    mean: float
    low: float
    high: float
    p: float | None
    corrected_p: float | None
    effect: float | None
    better: float
    worse: float

    @property
    def significant(self) -> bool:
        """Whether corrected_p is below SIGNIFICANT: what † marks."""
        return self.corrected_p is not None and self.corrected_p < SIGNIFICANT


def compare(
    baseline: Results,
    systems: Sequence[Results],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    family: int | None = None,
) -> list[Mapping[str, Difference]]:
    """For each of `systems`: measure → Difference from `baseline`.

    The Bonferroni family is every (system, measure) pair compared here; `family` is its size where
    these are only some of the comparisons made together. seed: of the bootstrap.
    Raises MissingPackageError without scipy (extra `study`), and InputError if the results do not
    share their queries or if there are fewer than two.
    """
    if not systems:
        return []
    family = family or len(systems) * len(baseline.values)
    return [
        {
            name: _difference(baseline, system, name, family, seed, resamples)
            for name in baseline.values
        }
        for system in systems
    ]


def _difference(
    baseline: Results, system: Results, name: str, family: int, seed: int, resamples: int
) -> Difference:
    queries = baseline.values[name]
    if system.values[name].keys() != queries.keys() or len(queries) < 2:
        raise InputError("runs can only be compared over the same two or more judged queries")
    delta = np.array([system.values[name][q] - queries[q] for q in queries])
    better, worse = float(np.mean(delta > 0)), float(np.mean(delta < 0))
    if np.ptp(delta) < NO_SPREAD:  # neither test nor bootstrap is defined
        even = float(delta[0])
        p = 1.0 if even == 0 else None
        effect = 0.0 if even == 0 else None
        return Difference(even, even, even, p, p, effect, better, worse)
    p = float(_stats().ttest_1samp(delta, 0).pvalue)
    low, high = mean_interval(delta, seed=seed, resamples=resamples)
    mean, corrected = float(delta.mean()), min(1.0, p * family)
    effect = mean / float(delta.std(ddof=1))
    return Difference(mean, low, high, p, corrected, effect, better, worse)


def mean_interval(
    values: NDArray[np.float64], *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """95 % interval of the mean of `values` (n,), by the BCa bootstrap; n is 2 or more.

    Values that do not differ give their mean twice. Raises MissingPackageError without scipy.
    """
    if len(values) < 2:
        raise InputError("an interval needs two or more queries", found=str(len(values)))
    if np.ptp(values) < NO_SPREAD:
        return float(values[0]), float(values[0])
    interval = (
        _stats()
        .bootstrap(
            (values,),
            np.mean,
            n_resamples=resamples,
            confidence_level=CONFIDENCE,
            method="BCa",
            rng=np.random.default_rng(seed),
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
