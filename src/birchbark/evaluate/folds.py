"""How are queries split into folds for cross-validation?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

Folds = tuple[tuple[str, ...], ...]


def make_folds(query_ids: Iterable[str], count: int, seed: int) -> Folds:
    """Assign query ids randomly to `count` folds whose sizes differ by at most one.

    The result depends on `seed` but not on the order of `query_ids`. Ids are sorted within a fold.
    Raises InputError for fewer than two folds, for more folds than queries, and for a seed below 0.
    """
    ids = sorted(set(query_ids))
    if not 2 <= count <= len(ids):
        raise InputError(
            "wrong number of folds",
            wanted=f"2 to {len(ids)}, the number of queries" if len(ids) > 1 else "two queries",
            found=str(count),
        )
    shuffled = random_numbers(seed).permutation(len(ids))
    return tuple(tuple(ids[i] for i in sorted(fold)) for fold in np.array_split(shuffled, count))


def random_numbers(seed: int) -> np.random.Generator:
    """Return a generator of random numbers; InputError for a seed below 0."""
    if seed < 0:
        raise InputError("seed is out of range", wanted="0 or more", found=str(seed))
    return np.random.default_rng(seed)


def choose_by_fold(
    values: NDArray[np.float64], query_ids: Sequence[str], folds: Folds
) -> tuple[int, ...]:
    """Choose for each fold the weighting with the best mean over the queries of the *other* folds.

    values: (weightings, queries), queries in the order of `query_ids`. Means are rounded to 12
    decimals; ties go to the first weighting. Raises InputError unless every query is in exactly
    one fold, and if all queries are in one.
    """
    fold_of = {query_id: number for number, fold in enumerate(folds) for query_id in fold}
    if len(fold_of) < sum(map(len, folds)) or set(query_ids) - set(fold_of):
        raise InputError("every query must be in exactly one fold")
    numbers = np.array([fold_of[query_id] for query_id in query_ids])  # (queries,)
    if len(query_ids) and len(set(numbers.tolist())) < 2:
        raise InputError("all queries are in one fold", wanted="queries in two folds or more")
    # per fold: (weightings,)
    means = [values[:, numbers != fold].mean(axis=1) for fold in range(len(folds))]
    return tuple(int(np.argmax(np.round(mean, 12))) for mean in means)
