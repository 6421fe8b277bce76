"""How do token numbers in document order become postings, and postings a forward index?

Compiled by numba when first called. Three counting passes, linear in the number of tokens.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from birchbark.index.compiled import compiled

Ints = NDArray[np.int64]
UInts = NDArray[np.uint32]


@compiled
def invert(
    tokens: UInts, doc_starts: Ints, term_starts: Ints, token_terms: UInts, terms: int
) -> tuple[Ints, UInts, UInts, UInts]:
    """Postings of a field.

    tokens: (n,) token numbers of all documents end to end. doc_starts: (documents + 1,) where each
    begins. term_starts, token_terms: token t stands for the terms
    token_terms[term_starts[t]:term_starts[t + 1]]; it may be none or several. terms: how many.

    Returns starts (terms + 1,), docs (p,), tfs (p,), lengths (documents,): the postings of term t
    are at starts[t]:starts[t + 1], documents rising.
    """
    documents = len(doc_starts) - 1
    lengths = np.zeros(documents, np.uint32)
    occurrences = np.zeros(terms + 1, np.int64)
    for doc in range(documents):
        for i in range(doc_starts[doc], doc_starts[doc + 1]):
            token = tokens[i]
            for j in range(term_starts[token], term_starts[token + 1]):
                occurrences[token_terms[j] + 1] += 1
                lengths[doc] += 1
    begins = np.cumsum(occurrences)
    where = np.empty(begins[-1], np.uint32)
    position = begins[:-1].copy()
    for doc in range(documents):
        for i in range(doc_starts[doc], doc_starts[doc + 1]):
            token = tokens[i]
            for j in range(term_starts[token], term_starts[token + 1]):
                term = token_terms[j]
                where[position[term]] = doc
                position[term] += 1

    starts = np.zeros(terms + 1, np.int64)
    for term in range(terms):
        distinct = 0
        for i in range(begins[term], begins[term + 1]):
            if i == begins[term] or where[i] != where[i - 1]:
                distinct += 1
        starts[term + 1] = starts[term] + distinct
    docs = np.empty(starts[-1], np.uint32)
    tfs = np.zeros(starts[-1], np.uint32)
    for term in range(terms):
        at = starts[term] - 1
        for i in range(begins[term], begins[term + 1]):
            if i == begins[term] or where[i] != where[i - 1]:
                at += 1
                docs[at] = where[i]
            tfs[at] += 1
    return starts, docs, tfs, lengths


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
