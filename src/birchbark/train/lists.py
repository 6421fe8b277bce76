"""Which texts of a query are trained on together, in one list?

Lists are sampled again in each epoch. They depend on seed and epoch alone, so a resumed training
run uses the same lists as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.pairs.pair_table import Indices, PairTable

PairList = tuple[int, ...]  # indices of pairs that share a query
HasGradient = Callable[[NDArray[np.float32]], bool]

UNITS = ("pair", "positive", "query")


@dataclass(frozen=True, slots=True)
class ListSampling:
    """How pairs are sampled into lists in each epoch.

    each: `pair` makes a list of each pair; `positive` makes a list of each relevant text and
    `texts` - 1 texts of the same query with lower grades; `query` shuffles the texts of each query
    and divides them into lists of `texts`.
    texts: the maximum number of texts per list.
    take: the number of lists per epoch, drawn at random; None for all.
    """

    each: str = "pair"
    texts: int = 1
    take: int | None = None

    def __post_init__(self) -> None:
        if self.each not in UNITS:
            raise InputError(f"unknown lists {self.each!r}", wanted=f"one of {', '.join(UNITS)}")
        if (self.each == "pair") != (self.texts == 1):
            raise InputError(
                f"{self.texts} texts per list with each = {self.each!r}",
                wanted="1 with each = 'pair', otherwise 2 or more",
            )


def sample_lists(
    pairs: PairTable,
    sampling: ListSampling,
    seed: Sequence[int],
    has_gradient: HasGradient = lambda grades: True,
) -> list[PairList]:
    """Return the lists of one epoch, in random order.

    has_gradient: whether the loss of a list with these grades depends on the model. If each =
    `query`, lists without a gradient and lists of a single text are left out.
    """
    rng = np.random.default_rng(seed)
    if sampling.each == "pair":
        return [(int(pair),) for pair in rng.permutation(len(pairs))[: sampling.take]]
    if sampling.each == "positive":
        lowest = np.array([pairs.grades[indices].min() for indices in pairs.by_query])  # (queries,)
        threshold = np.maximum(lowest, 0)[pairs.query] if len(pairs) else pairs.grades  # (pairs,)
        positives = rng.permutation(np.flatnonzero(pairs.grades > threshold))[: sampling.take]
        return [_with_negatives(pairs, int(pair), sampling.texts - 1, rng) for pair in positives]
    lists: list[PairList] = [
        tuple(chunk.tolist())
        for of_query in pairs.by_query
        for chunk in _chunks(rng.permutation(of_query), sampling.texts)
    ]
    shuffled = (lists[i] for i in rng.permutation(len(lists)))
    usable = [
        pair_list
        for pair_list in shuffled
        if len(pair_list) > 1 and has_gradient(pairs.grades[list(pair_list)])
    ]
    return usable[: sampling.take]


def _with_negatives(pairs: PairTable, pair: int, count: int, rng: np.random.Generator) -> PairList:
    """Return `pair` and up to `count` random pairs of its query with lower grades."""
    others = pairs.by_query[pairs.query[pair]]
    lower = others[pairs.grades[others] < pairs.grades[pair]]
    return (pair, *rng.choice(lower, min(count, len(lower)), replace=False).tolist())


def _chunks(indices: Indices, size: int) -> list[Indices]:
    return [indices[start : start + size] for start in range(0, len(indices), size)]
