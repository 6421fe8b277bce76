"""Which queries, and which of their pairs, are held out of training for validation?"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError


def held_out_queries(queries: Iterable[str], share: float) -> list[str]:
    """Return about `share` of the query texts, in ascending order of their hashes.

    A query is held out if its hash, in [0, 1), is below `share`. The hash depends on the text
    alone, without differences in white space. So a query that is held out of one file is held out
    of every file with an equal or larger share, for every seed and in every training run.
    """
    values = {text: _hash_value(text) for text in queries}
    return sorted(
        (text for text, value in values.items() if value < share), key=lambda t: (values[t], t)
    )


def held_out_ids(queries: Mapping[str, str], share: float) -> frozenset[str]:
    """Return the ids of the held-out queries.

    queries: texts by id. Raises InputError if the share is out of range, or if no query or every
    query would be held out.
    """
    if not 0 < share < 1:
        raise InputError(
            "share of queries is out of range", wanted="above 0 and below 1", found=str(share)
        )
    texts = set(held_out_queries(queries.values(), share))
    held_out = frozenset(query_id for query_id, text in queries.items() if text in texts)
    if len(held_out) in (0, len(queries)):
        raise InputError(
            f"a share of {share} leaves one side without queries",
            found=f"{len(held_out)} of {len(queries)} queries held out",
            remedy="choose another share, or provide more queries",
        )
    return held_out


def split_for_validation(
    sets: Sequence[Sequence[str]],
    shares: Sequence[float],
    max_queries: Sequence[int | None],
    unused: Collection[str] = (),
) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Return for each data set which of its queries to train on, and which to validate on.

    A query that is held out of one data set is not used for training in any. Queries that differ
    only in white space count as the same query.
    sets: the queries of each data set. shares: the share of held-out queries of each data set.
    max_queries: the number of held-out queries of each data set that are used for validation; None
    for all. unused: texts of queries that are used for neither.
    """
    never = set(map(normalised, unused))
    held_out = [
        held_out_queries((q for q in queries if normalised(q) not in never), share) if share else []
        for queries, share in zip(sets, shares, strict=True)
    ]
    in_any_set = never.union(normalised(query) for queries in held_out for query in queries)
    splits = []
    for queries, held, limit in zip(sets, held_out, max_queries, strict=True):
        validated = set(held[:limit])
        trained = [normalised(query) not in in_any_set for query in queries]
        splits.append((np.array(trained, bool), np.array([q in validated for q in queries], bool)))
    return splits


def normalised(text: str) -> str:
    """Return `text` with each run of white space replaced by one space."""
    return " ".join(text.split())


def _hash_value(text: str) -> float:
    """Return a hash of `text` in [0, 1)."""
    data = normalised(text).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, person=b"held").digest()) / 2**64
