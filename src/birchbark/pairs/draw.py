"""What is drawn by chance, so that one seed draws the same on every machine?

Each thing has a lot, which depends on the seed and on itself alone; the smallest lots are drawn. So
what is drawn for one query depends on no other query, nor on any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np


def drawn(names: Iterable[str], count: int, seed: int, purpose: str = "") -> list[str]:
    """`count` of the distinct `names`, all of them if there are fewer, in the order of their lots.

    purpose: what is drawn for; another purpose draws others.
    """
    return sorted(set(names), key=lambda name: (_lot(name, seed, purpose), name))[:count]


def chance(seed: int, *names: str) -> np.random.Generator:
    """Numbers by chance that depend on these names, two or more, and the seed alone."""
    purpose, *others = names
    return np.random.default_rng(int.from_bytes(_lot("\0".join(others), seed, purpose), "big"))


def _lot(name: str, seed: int, purpose: str) -> bytes:
    whole = "\0".join((str(seed), purpose, name)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=16).digest()
