"""Which texts of a query are trained on together, in one list?

Lists are sampled again in each epoch. They depend on seed and epoch alone, so a resumed training
run uses the same lists as an uninterrupted one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.pairs.pair_table import Groups, Indices, PairTable

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
) -> Groups:
    """Return the lists of one epoch, in random order: each has the indices of pairs of one query.

    has_gradient: whether the loss of a list with these grades depends on the model. If each =
    `query`, lists without a gradient and lists of a single text are left out.
    """
    rng = np.random.default_rng(seed)
    if sampling.each == "pair":
        sampled = rng.permutation(len(pairs)).astype(np.int32)[: sampling.take]
        return Groups(sampled, np.arange(1, len(sampled) + 1, dtype=np.int32))
    if sampling.each == "positive":
        lowest = pairs.lowest_grades  # (queries,)
        is_relevant = pairs.grades > np.maximum(lowest, 0)[pairs.query]  # (pairs,)
        positives = rng.permutation(np.flatnonzero(is_relevant))[: sampling.take]
        return _joined(_with_negatives(pairs, n, sampling.texts - 1, rng) for n in positives)
    chunks = _joined(
        chunk
        for of_query in pairs.by_query
        for chunk in _chunks(rng.permutation(of_query), sampling.texts)
    )
    shuffled = (chunks[i] for i in rng.permutation(len(chunks)))
    usable = (own for own in shuffled if len(own) > 1 and has_gradient(pairs.grades[own]))
    return _joined(islice(usable, sampling.take))


def _with_negatives(pairs: PairTable, pair: int, count: int, rng: np.random.Generator) -> Indices:
    """Return `pair` and up to `count` random pairs of its query with lower grades."""
    others = pairs.by_query[pairs.query[pair]]
    lower = others[pairs.grades[others] < pairs.grades[pair]]
    negatives = rng.choice(lower, min(count, len(lower)), replace=False)
    return np.concatenate([[pair], negatives])


def _joined(lists: Iterable[Indices]) -> Groups:
    members, ends = array("i"), array("i")
    for own in lists:
        members.extend(own.tolist())
        ends.append(len(members))
    return Groups(np.array(members), np.array(ends))


def _chunks(indices: Indices, size: int) -> list[Indices]:
    return [indices[start : start + size] for start in range(0, len(indices), size)]
