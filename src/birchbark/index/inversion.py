"""How do term numbers in document order become postings, and postings a forward index?

Compiled by numba when first called. Two counting passes, linear in the number of terms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from birchbark.index.compiled import compiled

Ints = NDArray[np.int64]
UInts = NDArray[np.uint32]


@compiled
def frequencies(terms: UInts, doc_starts: Ints, most: int) -> Ints:
    """How many documents hold each term, (most,).

    terms: (n,) term numbers of all documents end to end, each below `most`. doc_starts:
    (documents + 1,) where each begins.
    """
    found = np.zeros(most, np.int64)
    last = np.full(most, -1, np.int64)
    for doc in range(len(doc_starts) - 1):
        for i in range(doc_starts[doc], doc_starts[doc + 1]):
            term = terms[i]
            if last[term] != doc:
                last[term] = doc
                found[term] += 1
    return found


@compiled
def invert(terms: UInts, doc_starts: Ints, found: Ints, order: Ints) -> tuple[Ints, UInts, UInts]:
    """Postings of a field.

    terms, doc_starts, found: as `frequencies` takes and gives them. order: (t,) all numbers of
    terms that occur, in the order in which their postings are wanted.

    Returns starts (t + 1,), docs (p,), tfs (p,): the postings of term order[i] are at
    starts[i]:starts[i + 1], documents rising.
    """
    starts = np.zeros(len(order) + 1, np.int64)
    begins = np.zeros(len(found), np.int64)
    for i, term in enumerate(order):
        begins[term] = starts[i]
        starts[i + 1] = starts[i] + found[term]
    ends = begins.copy()
    docs = np.empty(starts[-1], np.uint32)
    tfs = np.empty(starts[-1], np.uint32)
    for doc in range(len(doc_starts) - 1):
        for i in range(doc_starts[doc], doc_starts[doc + 1]):
            term = terms[i]
            at = ends[term]
            if at > begins[term] and docs[at - 1] == doc:
                tfs[at - 1] += 1
            else:
                docs[at], tfs[at] = doc, 1
                ends[term] += 1
    return starts, docs, tfs


@compiled
def transpose(starts: Ints, docs: UInts, tfs: UInts, documents: int) -> tuple[Ints, UInts, UInts]:
    """The forward index of postings: starts (documents + 1,), terms (p,) rising, tfs (p,)."""
    counts = np.zeros(documents + 1, np.int64)
    for doc in docs:
        counts[doc + 1] += 1
    forward = np.cumsum(counts)
    position = forward[:-1].copy()
    terms = np.empty(len(docs), np.uint32)
    frequencies = np.empty(len(docs), np.uint32)
    for term in range(len(starts) - 1):
        for i in range(starts[term], starts[term + 1]):
            at = position[docs[i]]
            terms[at] = term
            frequencies[at] = tfs[i]
            position[docs[i]] += 1
    return forward, terms, frequencies
