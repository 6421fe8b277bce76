"""How are posting lists compressed? postings.py, which reads them, documents the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.compiled import compiled
from birchbark.index.arrays import save_array, smallest_uint

# numba compiles these constants into the kernels of postings.py and caches the result by file. If
# you change one, also change postings.py and raise VERSION in layout.py.
BLOCK = 128  # postings
LONG = 1 << 31  # marks the first word of a list with more than one block
ENTRY = 4  # words per block in the table
MAX_TF = (1 << 20) - 1  # the largest frequency in a table entry; larger ones are stored as this

Words = NDArray[np.uint32]


class PackedListWriter:
    """Writes compressed lists to `NAME.words`, and the offset of each list to `NAME.starts.npy`."""

    def __init__(self, path: Path) -> None:
        """Start the files under the name `path`."""
        self._path = path
        self._words = path.with_suffix(".words")
        self._words.touch(exist_ok=False)
        self._offsets = [np.zeros(1, np.int64)]
        self._end = 0

    def add(
        self, starts: NDArray[np.int64], docs: Words, tfs: Words, lengths: NDArray[Any]
    ) -> None:
        """Append posting lists; see `pack` for the arguments."""
        words, offsets = pack(starts, docs, tfs, lengths)
        with self._words.open("ab") as out:
            out.write(words.data)
        self._offsets.append(offsets[1:] + self._end)
        self._end += len(words)

    def close(self) -> None:
        """Write the offsets, and a word of padding because readers load two words at a time."""
        with self._words.open("ab") as out:
            out.write(bytes(4))
        offsets = smallest_uint(np.concatenate(self._offsets))
        save_array(self._path.with_suffix(".starts.npy"), offsets)


def pack(
    starts: NDArray[np.int64], docs: Words, tfs: Words, lengths: NDArray[Any]
) -> tuple[Words, NDArray[np.int64]]:
    """Compress posting lists into 32-bit words.

    The forward index uses the same format with terms in place of documents; there, `lengths` has no
    meaning.

    starts: (lists + 1,), where each list begins in `docs` and `tfs`. docs: (postings,), document
    numbers, ascending within a list. tfs: (postings,), frequencies, 1 or more. lengths:
    (documents,), the length of each document. Returns the words, and the offset of each list's
    first word, (lists + 1,).
    """
    offsets = np.zeros(len(starts), np.int64)
    _measure(starts, docs, tfs, offsets)
    words = np.zeros(offsets[-1], np.uint32)
    _write(starts, docs, tfs, lengths, offsets, words)
    return words, offsets


@compiled
def _bits(value: int) -> int:
    """Return the number of bits that `value` needs."""
    bits = 0
    while value >> bits:
        bits += 1
    return bits


@compiled
def _widths(docs: Any, tfs: Any, begin: int, end: int, before: int) -> tuple[int, int]:
    """Return the bits per gap and the bits per frequency − 1 for the postings begin:end.

    before: the document before docs[begin] in the list, −1 if there is none.
    """
    gaps, counts = 0, 0
    # OR all values together: the result needs as many bits as the largest of them.
    for i in range(begin, end):
        doc = np.int64(docs[i])
        gaps |= doc - before - 1
        counts |= np.int64(tfs[i]) - 1
        before = doc
    return _bits(gaps), _bits(counts)


@compiled
def _measure(starts: Any, docs: Any, tfs: Any, offsets: Any) -> None:
    """Fill `offsets` (lists + 1,) with the offset of each list's first word."""
    for term in range(len(starts) - 1):
        begin, end = starts[term], starts[term + 1]
        # The first word, and the table if the list has several blocks.
        size = 1 if end - begin <= BLOCK else 1 + ENTRY * ((end - begin + BLOCK - 1) // BLOCK)
        # The blocks, each rounded up to whole words.
        before = -1
        for first in range(begin, end, BLOCK):
            last = min(first + BLOCK, end)
            doc_bits, tf_bits = _widths(docs, tfs, first, last, before)
            size += ((last - first) * (doc_bits + tf_bits) + 31) // 32
            before = np.int64(docs[last - 1])
        offsets[term + 1] = offsets[term] + size


@compiled
def _put(words: Any, bit: int, value: int, bits: int) -> int:
    """Write the low `bits` of `value` at bit position `bit`; return the position after them."""
    word, shift = bit >> 5, bit & 31
    words[word] |= np.uint32((value << shift) & 0xFFFFFFFF)
    if shift + bits > 32:  # the value continues in the next word
        words[word + 1] |= np.uint32(value >> (32 - shift))
    return bit + bits


@compiled
def _write(starts: Any, docs: Any, tfs: Any, lengths: Any, offsets: Any, words: Any) -> None:
    """Write all lists to `words`, which is initially zero. offsets: computed by `_measure`."""
    for term in range(len(starts) - 1):
        # Layout of this list: first word, table (only if there are several blocks), blocks.
        begin, end = starts[term], starts[term + 1]
        blocks = max(1, (end - begin + BLOCK - 1) // BLOCK)
        at = offsets[term]
        table = at + 1
        base = table if blocks == 1 else table + ENTRY * blocks
        word, before = base, -1
        for block in range(blocks):
            first = begin + block * BLOCK
            last = min(first + BLOCK, end)
            doc_bits, tf_bits = _widths(docs, tfs, first, last, before)
            widths = doc_bits | tf_bits << 6
            largest_tf, shortest = np.int64(0), np.int64(0xFFFFFFFF)
            bit = word * 32
            # Write the gaps; find the largest frequency and the shortest document, which bound the
            # scores of the block.
            for i in range(first, last):
                doc = np.int64(docs[i])
                bit = _put(words, bit, doc - before - 1, doc_bits)
                largest_tf = max(largest_tf, np.int64(tfs[i]))
                shortest = min(shortest, np.int64(lengths[doc]))
                before = doc
            # Write the frequencies − 1.
            for i in range(first, last):
                bit = _put(words, bit, np.int64(tfs[i]) - 1, tf_bits)
            # Write the first word of the list, and the block's entry in the table.
            if blocks == 1:
                words[at] = np.uint32((last - first) | widths << 8)
            else:
                entry = table + ENTRY * block
                words[at] = np.uint32(LONG | (end - begin))
                words[entry] = np.uint32(before)
                words[entry + 1] = np.uint32(word - base)
                words[entry + 2] = np.uint32(widths | min(largest_tf, MAX_TF) << 12)
                words[entry + 3] = np.uint32(shortest)
            word = (bit + 31) // 32  # the next block begins at a new word
