"""How are pairwise comparisons aggregated into one score per document (duoBERT)?

p[i, j] is the probability that document i is more relevant than document j. Nogueira et al. 2019.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.arguments import is_count
from birchbark.errors import InputError, require_at_least

Matrix = NDArray[np.float64]
METHODS: Mapping[str, Callable[[Matrix], Matrix]] = {  # (n, n) → (n,)
    "sum": lambda p: np.nansum(p, axis=1),
    "binary": lambda p: (np.nan_to_num(p) > 0.5).sum(axis=1).astype(np.float64),
    "min": lambda p: np.nanmin(p, axis=1),
    "max": lambda p: np.nanmax(p, axis=1),
}


@dataclass(frozen=True, slots=True)
class Pairwise:
    """How the pairwise comparisons of a document become its score.

    p[i, j] is the probability that document i is more relevant than document j, i ≠ j.

    Attributes:
        method: The score of document i: `"sum"`, Σ p[i, j] over j; `"binary"`, the number of j
            with p[i, j] > 0.5; `"min"` or `"max"`, the lowest or highest p[i, j]. Defaults to
            `"sum"`.
        sample: Number of other documents, drawn at random, that each document is compared with.
            Defaults to None: all others.
    """

    method: str = defaults.DUO_AGGREGATION
    sample: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                "unknown aggregation of comparisons",
                wanted=" or ".join(METHODS),
                found=str(self.method),
            )
        if self.sample is not None:
            require_at_least("number of sampled documents", self.sample, 1)

    def comparisons_per_document(self, count: int) -> int:
        """Return how many other documents each of `count` documents is compared with."""
        others = max(0, count - 1)
        return others if self.sample is None else min(self.sample, others)

    def pairs(self, count: int, seed: str) -> list[tuple[int, int]]:
        """Return the pairs (i, j) of documents to compare, ordered by i, then j.

        Args:
            count: The number of documents.
            seed: A text that seeds the sampling, such as the query; each query then has the same
                sample in every run.
        """
        others = [[j for j in range(count) if j != i] for i in range(count)]
        if self.sample is not None:
            digest = hashlib.blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            generator = np.random.default_rng(int.from_bytes(digest, "little"))
            size = self.comparisons_per_document(count)
            others = [sorted(generator.choice(row, size, replace=False).tolist()) for row in others]
        return [(i, j) for i, row in enumerate(others) for j in row]

    def scores(self, p: Matrix) -> Matrix:
        """Return the scores of n documents, n ≥ 2.

        Args:
            p: The probabilities (n, n); NaN for pairs that were not compared.

        Returns:
            The scores (n,).
        """
        return METHODS[self.method](p)

    def __str__(self) -> str:
        return self.method if self.sample is None else f"sample:{self.sample}"


def parse_pairwise(text: str) -> Pairwise:
    """Parse the name of a pairwise aggregation: sum, binary, min, max, or sample:M."""
    if text in METHODS:
        return Pairwise(text)
    name, _, number = text.partition(":")
    if name == "sample" and is_count(number) and int(number) > 0:
        return Pairwise("sum", int(number))
    raise InputError(
        f"unknown pairwise aggregation {text!r}",
        wanted=f"{', '.join(METHODS)}, or sample:M",
    )
