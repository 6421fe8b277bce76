"""Which queries are kept apart, to be measured and not to be learnt from?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from birchbark.errors import InputError


def held_apart(queries: Iterable[str], share: float) -> list[str]:
    """Those of the query texts that are kept apart, about `share` of them, by rising lots.

    A lot depends on the text alone, white space aside: so a query is kept apart in every file, for
    every seed and in the training before as well, where their shares are as large.
    """
    lots = {text: _lot(text) for text in queries}
    return sorted((text for text, lot in lots.items() if lot < share), key=lambda t: (lots[t], t))


def ids_held_apart(queries: Mapping[str, str], share: float) -> frozenset[str]:
    """The ids of those that are kept apart, of `queries`, id → text.

    Raises InputError if the share is out of range, or leaves one side empty.
    """
    if not 0 < share < 1:
        raise InputError(
            "share of queries is out of range", wanted="above 0 and below 1", found=str(share)
        )
    texts = set(held_apart(queries.values(), share))
    apart = frozenset(query_id for query_id, text in queries.items() if text in texts)
    if len(apart) in (0, len(queries)):
        raise InputError(
            f"a share of {share} leaves one side without queries",
            found=f"{len(apart)} of {len(queries)} queries to hold apart",
            remedy="take another share, or more queries",
        )
    return apart


def _lot(text: str) -> float:
    """From 0 up to 1."""
    spelt = " ".join(text.split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(spelt, digest_size=8, person=b"held").digest()) / 2**64
