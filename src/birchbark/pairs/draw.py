"""What is drawn by chance, so that one seed draws the same on every machine?

Each thing has a lot, which depends on the seed and on itself alone; the smallest lots are drawn. So
what is drawn for one query depends on no other query, nor on any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from birchbark.errors import InputError


def drawn(names: Iterable[str], count: int, seed: int, purpose: str = "") -> list[str]:
    """`count` of the distinct `names`, all of them if there are fewer, in the order of their lots.

    purpose: what is drawn for; another purpose draws others.
    """
    return sorted(set(names), key=lambda name: (_lot(name, seed, purpose), name))[:count]


def _lot(name: str, seed: int, purpose: str) -> bytes:
    whole = "\0".join((str(seed), purpose, name)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=16).digest()


def held_apart(queries: Mapping[str, str], share: float, seed: int) -> frozenset[str]:
    """The query_ids that are kept apart: `share` of the texts in `queries`, with all their ids.

    Two ids with one text are on one side; so are texts that differ in white space alone. Raises
    InputError if the share is out of range, or leaves one side empty.
    """
    if not 0 < share < 1:
        raise InputError(
            "share of queries is out of range", wanted="above 0 and below 1", found=str(share)
        )
    spelt = {query_id: " ".join(text.split()) for query_id, text in queries.items()}
    texts = set(spelt.values())
    count = round(share * len(texts))
    if not 0 < count < len(texts):
        raise InputError(
            f"a share of {share} leaves one side without queries",
            found=f"{count} of {len(texts)} queries to hold apart",
            remedy="take another share, or more queries",
        )
    apart = set(drawn(texts, count, seed, "held apart"))
    return frozenset(query_id for query_id, text in spelt.items() if text in apart)
