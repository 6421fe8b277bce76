"""Are lists read as they were packed?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from test_postings import random_lists

from birchbark.index.compress_postings import BLOCK, pack
from birchbark.index.postings import frequencies, unpack

SIZES = [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 1000]


@given(seed=st.integers(0, 10**6), sizes=st.lists(st.sampled_from(SIZES), max_size=6))
def test_lists_are_read_as_they_were_packed(seed: int, sizes: list[int]) -> None:
    """This holds for any sizes, gaps and frequencies."""
    rng = np.random.default_rng(seed)
    documents = int(rng.choice([1000, 10**6]))
    starts, docs, tfs = random_lists(rng, sizes, documents)
    tfs[rng.random(len(tfs)) < 0.01] = 2**32 - 1
    words, offsets = pack(starts, docs, tfs, np.ones(documents, np.uint32))
    words = np.append(words, np.uint32(0))
    assert frequencies(words, offsets[:-1]).tolist() == sizes
    read_docs, read_tfs = np.zeros_like(docs), np.zeros_like(tfs)
    unpack(words, offsets[:-1], documents, read_docs, read_tfs)
    assert read_docs.tolist() == docs.tolist()
    assert read_tfs.tolist() == tfs.tolist()


def test_gaps_of_32_bits() -> None:
    """The last document number that a part can have."""
    docs = np.array([0, 2**32 - 2], np.uint32)
    lengths = np.broadcast_to(np.uint32(1), 2**32 - 1)
    starts = np.array([0, 2])
    words, offsets = pack(starts, docs, np.ones(2, np.uint32), lengths)
    read_docs, tfs = np.zeros(2, np.uint32), np.zeros(2, np.uint32)
    unpack(np.append(words, np.uint32(0)), offsets[:-1], 2**32, read_docs, tfs)
    assert read_docs.tolist() == docs.tolist()
