"""How are queries dealt into folds, so that what is chosen on some is tested on others?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

Folds = tuple[tuple[str, ...], ...]


def make_folds(query_ids: Iterable[str], count: int, seed: int) -> Folds:
    """`count` folds of query ids: each id in one, sizes equal to within one, by chance from `seed`.

    The order of `query_ids` does not matter; within a fold they are sorted. Raises InputError for
    fewer than two folds, and for more folds than queries.
    """
    ids = sorted(set(query_ids))
    if not 2 <= count <= len(ids):
        raise InputError(
            "wrong number of folds",
            wanted=f"2 to {len(ids)}, the number of queries",
            found=str(count),
        )
    shuffled = np.random.default_rng(seed).permutation(len(ids))
    return tuple(tuple(ids[i] for i in sorted(part)) for part in np.array_split(shuffled, count))


def choose_by_fold(
    values: NDArray[np.float64], query_ids: Sequence[str], folds: Folds
) -> tuple[int, ...]:
    """For each fold, the setting with the best mean over the queries of the *other* folds.

    values: (settings, queries), queries in the order of `query_ids`. Ties, to 12 decimals, go to
    the first setting. Raises InputError for a query that is not in exactly one fold.
    """
    fold_of = {query_id: number for number, fold in enumerate(folds) for query_id in fold}
    if len(fold_of) < sum(map(len, folds)) or set(query_ids) - set(fold_of):
        raise InputError("every query must be in one fold, and in one alone")
    numbers = np.array([fold_of[query_id] for query_id in query_ids])
    means = [values[:, numbers != fold].mean(axis=1) for fold in range(len(folds))]
    return tuple(int(np.argmax(np.round(mean, 12))) for mean in means)
