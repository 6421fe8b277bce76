"""How are term numbers in document order inverted into postings, and back into a forward index?

Each direction is a counting sort, linear in the number of terms. numba compiles it on first use.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from birchbark.compiled import compiled

Ints = NDArray[np.int64]
UInts = NDArray[np.uint32]


@compiled
def document_frequencies(terms: UInts, doc_starts: Ints, term_count: int) -> Ints:
    """Return the number of documents that contain each term, (term_count,).

    terms: (n,), the term numbers of all documents end to end, each below `term_count`. doc_starts:
    (documents + 1,), where each document begins.
    """
    frequencies = np.zeros(term_count, np.int64)
    last = np.full(term_count, -1, np.int64)  # the last document that each term was counted for
    for doc in range(len(doc_starts) - 1):
        for i in range(doc_starts[doc], doc_starts[doc + 1]):
            term = terms[i]
            if last[term] != doc:
                last[term] = doc
                frequencies[term] += 1
    return frequencies


@compiled
def invert(
    terms: UInts, doc_starts: Ints, frequencies: Ints, order: Ints
) -> tuple[Ints, UInts, UInts]:
    """Return the postings of a field.

    terms, doc_starts: see `document_frequencies`. frequencies: its result. order: (t,), the numbers
    of all terms that occur, in the order in which to write their postings.

    Returns starts (t + 1,), docs (p,) and tfs (p,). The postings of term order[i] are
    starts[i]:starts[i + 1], in ascending order of document.
    """
    # Reserve space for each term's postings.
    starts = np.zeros(len(order) + 1, np.int64)
    begins = np.zeros(len(frequencies), np.int64)  # by term number
    for i, term in enumerate(order):
        begins[term] = starts[i]
        starts[i + 1] = starts[i] + frequencies[term]
    # For each term of each document, increment the frequency of its last posting or append one.
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
    """Return the forward index of `documents` documents, given their postings.

    starts, docs, tfs: the result of `invert`. Returns starts (documents + 1,), terms (p,), which
    ascend within each document, and tfs (p,).
    """
    # Count the terms of each document, and reserve space for them.
    counts = np.zeros(documents + 1, np.int64)
    for doc in docs:
        counts[doc + 1] += 1
    doc_starts = np.cumsum(counts)
    # Append each term, in order, to its documents.
    position = doc_starts[:-1].copy()  # (documents,)
    terms = np.empty(len(docs), np.uint32)
    frequencies = np.empty(len(docs), np.uint32)
    for term in range(len(starts) - 1):
        for i in range(starts[term], starts[term + 1]):
            at = position[docs[i]]
            terms[at] = term
            frequencies[at] = tfs[i]
            position[docs[i]] += 1
    return doc_starts, terms, frequencies
