"""How do comparisons of documents, two by two, become a score for each? duoBERT's five ways.

p[i, j] is the probability that document i is more relevant than document j. Nogueira et al. 2019.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

Matrix = NDArray[np.float64]
WAYS: Mapping[str, Callable[[Matrix], Matrix]] = {
    "sum": lambda p: np.nansum(p, axis=1),
    "binary": lambda p: (np.nan_to_num(p) > 0.5).sum(axis=1).astype(np.float64),
    "min": lambda p: np.nanmin(p, axis=1),
    "max": lambda p: np.nanmax(p, axis=1),
}


@dataclass(frozen=True, slots=True)
class Pairwise:
    """sum: Σ p[i, j]. binary: how many p[i, j] are above .5. min, max: of p[i, j]. Each over j ≠ i.

    sample: the sum over so many j, drawn by chance for each i; None for all.
    """

    way: str = "sum"
    sample: int | None = None

    def each(self, count: int) -> int:
        """With how many others each of `count` documents is compared."""
        others = max(0, count - 1)
        return others if self.sample is None else min(self.sample, others)

    def asked(self, count: int, seed: str) -> list[tuple[int, int]]:
        """Which pairs (i, j) of `count` documents are compared.

        seed: a text that the drawing depends on, so that no query changes another's.
        """
        others = [[j for j in range(count) if j != i] for i in range(count)]
        if self.sample is not None:
            digest = hashlib.blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            chance = np.random.default_rng(int.from_bytes(digest, "little"))
            fewer = self.each(count)
            others = [sorted(chance.choice(some, fewer, replace=False).tolist()) for some in others]
        return [(i, j) for i, some in enumerate(others) for j in some]

    def scores(self, p: Matrix) -> Matrix:
        """Scores (n,) by the probabilities p (n, n), NaN where nobody asked; n is 2 or more."""
        return WAYS[self.way](p)

    def __str__(self) -> str:
        return self.way if self.sample is None else f"sample:{self.sample}"


def parse_pairwise(text: str) -> Pairwise:
    """What `text` names: sum, binary, min, max, or sample:M."""
    name, _, number = text.partition(":")
    if name in WAYS and not number:
        return Pairwise(name)
    if name == "sample" and number.isdecimal() and int(number) > 0:
        return Pairwise("sum", int(number))
    raise InputError(
        f"unknown aggregation of pairs {text!r}", remedy=f"one of {', '.join(WAYS)}, or sample:5"
    )
