"""How is a random sample drawn that is the same on every machine for the same seed?

Each name is hashed together with the seed, and the names with the smallest hashes are drawn. So a
sample does not depend on the order of the names, and the sample of one query not on other queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import islice

import numpy as np

BLOCK = 1 << 17  # names


def sample(names: Iterable[str], count: int, seed: int, purpose: str = "") -> list[str]:
    """Return `count` distinct names, or all if there are fewer, in ascending order of their hashes.

    Of the others, which may be many and repeated, no more than a block is held in memory.
    purpose: a part of the hash that makes samples for different purposes independent.
    """
    drawn: list[str] = []
    names = iter(names)
    while block := set(islice(names, max(count, BLOCK))):
        both = block.union(drawn)
        drawn = sorted(both, key=lambda name: (_digest(name, seed, purpose), name))[:count]
    return drawn


def random_generator(seed: int, *names: str) -> np.random.Generator:
    """Return a generator that depends on `seed` and `names` (two or more) alone."""
    purpose, *others = names
    digest = _digest("\0".join(others), seed, purpose)
    return np.random.default_rng(int.from_bytes(digest, "big"))


def _digest(name: str, seed: int, purpose: str) -> bytes:
    data = "\0".join((str(seed), purpose, name)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()
