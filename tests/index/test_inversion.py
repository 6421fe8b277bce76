"""Are postings those of the documents, and the forward index that of the postings?"""

from __future__ import annotations

import numpy as np

from birchbark.index.inversion import document_frequencies, invert, transpose

# Three documents of the term numbers 2 0 2, none, and 0 1.
TERMS = np.array([2, 0, 2, 0, 1], np.uint32)
STARTS = np.array([0, 3, 3, 5])


def test_a_term_counts_once_in_a_document() -> None:
    """A term that does not occur is in no document."""
    assert document_frequencies(TERMS, STARTS, 4).tolist() == [2, 1, 1, 0]


def test_postings_are_in_the_order_asked_for() -> None:
    """Those of a term are in the order of documents, with the frequency in each."""
    frequencies = document_frequencies(TERMS, STARTS, 4)
    starts, docs, tfs = invert(TERMS, STARTS, frequencies, np.array([2, 0, 1]))
    assert starts.tolist() == [0, 1, 3, 4]
    assert docs.tolist() == [0, 0, 2, 2]
    assert tfs.tolist() == [2, 1, 1, 1]


def test_the_forward_index_has_the_terms_of_each_document() -> None:
    """They ascend; a document without terms has none."""
    starts = np.array([0, 1, 3, 4])
    docs, tfs = np.array([0, 0, 2, 2], np.uint32), np.array([2, 1, 1, 1], np.uint32)
    doc_starts, terms, counts = transpose(starts, docs, tfs, 3)
    assert doc_starts.tolist() == [0, 2, 2, 4]
    assert terms.tolist() == [0, 1, 1, 2]
    assert counts.tolist() == [2, 1, 1, 1]
