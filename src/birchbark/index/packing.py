"""How are postings made small? (How they are read again: postings.py, which draws the format.)"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.index.arrays import narrow, save_array
from birchbark.index.compiled import compiled

# postings.py is compiled with these: whoever changes one must touch that file, and layout's VERSION
BLOCK = 128
LONG = 1 << 31  # marks the first word of a list of more than one block
ENTRY = 4  # words of the table for each block
MOST_TF = (1 << 20) - 1  # what a table can say; more is unlimited

Words = NDArray[np.uint32]


class ListWriter:
    """Writes lists one after the other: `NAME.words`, and where each starts, `NAME.starts.npy`."""

    def __init__(self, path: Path) -> None:
        """Start the files under the name `path`."""
        self._path = path
        self._words = path.with_suffix(".words")
        self._words.touch(exist_ok=False)
        self._starts = [np.zeros(1, np.int64)]
        self._end = 0

    def add(
        self, starts: NDArray[np.int64], docs: Words, tfs: Words, lengths: NDArray[Any]
    ) -> None:
        """Write the lists that `pack` is told of."""
        words, places = pack(starts, docs, tfs, lengths)
        with self._words.open("ab") as out:
            out.write(words.data)
        self._starts.append(places[1:] + self._end)
        self._end += len(words)

    def close(self) -> None:
        """Write the starts, and one more word, as reading takes two at a time."""
        with self._words.open("ab") as out:
            out.write(bytes(4))
        save_array(self._path.with_suffix(".starts.npy"), narrow(np.concatenate(self._starts)))


def pack(
    starts: NDArray[np.int64], docs: Words, tfs: Words, lengths: NDArray[Any]
) -> tuple[Words, NDArray[np.int64]]:
    """Posting lists as words.

    starts: (lists + 1,); list t is docs[starts[t]:starts[t + 1]], rising, with its frequencies tfs,
    1 or more. lengths: of all documents. A list may be of other things than documents: of the terms
    of a document, where lengths mean nothing.

    Returns the words, and (lists + 1,) where each list's first word is.
    """
    places = np.zeros(len(starts), np.int64)
    _measure(starts, docs, tfs, places)
    words = np.zeros(places[-1], np.uint32)
    _write(starts, docs, tfs, lengths, places, words)
    return words, places


@compiled
def _bits(value: int) -> int:
    """How many bits hold `value`."""
    bits = 0
    while value >> bits:
        bits += 1
    return bits


@compiled
def _widths(docs: Any, tfs: Any, begin: int, end: int, before: int) -> tuple[int, int]:
    """Bits for the gaps and for the frequencies - 1 of docs[begin:end], after doc `before`."""
    gaps, counts = 0, 0
    for i in range(begin, end):
        doc = np.int64(docs[i])
        gaps |= doc - before - 1
        counts |= np.int64(tfs[i]) - 1
        before = doc
    return _bits(gaps), _bits(counts)


@compiled
def _measure(starts: Any, docs: Any, tfs: Any, places: Any) -> None:
    """Fill in where each list's words start."""
    for term in range(len(starts) - 1):
        begin, end = starts[term], starts[term + 1]
        size = 1 if end - begin <= BLOCK else 1 + ENTRY * ((end - begin + BLOCK - 1) // BLOCK)
        before = -1
        for first in range(begin, end, BLOCK):
            last = min(first + BLOCK, end)
            doc_bits, tf_bits = _widths(docs, tfs, first, last, before)
            size += ((last - first) * (doc_bits + tf_bits) + 31) // 32
            before = np.int64(docs[last - 1])
        places[term + 1] = places[term] + size


@compiled
def _put(words: Any, bit: int, value: int, bits: int) -> int:
    """Write the low `bits` of `value` at position `bit`; returns the position behind."""
    word, shift = bit >> 5, bit & 31
    words[word] |= np.uint32((value << shift) & 0xFFFFFFFF)
    if shift + bits > 32:
        words[word + 1] |= np.uint32(value >> (32 - shift))
    return bit + bits


@compiled
def _write(starts: Any, docs: Any, tfs: Any, lengths: Any, places: Any, words: Any) -> None:
    for term in range(len(starts) - 1):
        begin, end = starts[term], starts[term + 1]
        blocks = max(1, (end - begin + BLOCK - 1) // BLOCK)
        at = places[term]
        table = at + 1
        base = table if blocks == 1 else table + ENTRY * blocks
        word, before = base, -1
        for block in range(blocks):
            first = begin + block * BLOCK
            last = min(first + BLOCK, end)
            doc_bits, tf_bits = _widths(docs, tfs, first, last, before)
            widths = doc_bits | tf_bits << 6
            most, shortest = np.int64(0), np.int64(0xFFFFFFFF)
            bit = word * 32
            for i in range(first, last):
                doc = np.int64(docs[i])
                bit = _put(words, bit, doc - before - 1, doc_bits)
                most = max(most, np.int64(tfs[i]))
                shortest = min(shortest, np.int64(lengths[doc]))
                before = doc
            for i in range(first, last):
                bit = _put(words, bit, np.int64(tfs[i]) - 1, tf_bits)
            if blocks == 1:
                words[at] = np.uint32((last - first) | widths << 8)
            else:
                entry = table + ENTRY * block
                words[at] = np.uint32(LONG | (end - begin))
                words[entry] = np.uint32(before)
                words[entry + 1] = np.uint32(word - base)
                words[entry + 2] = np.uint32(widths | min(most, MOST_TF) << 12)
                words[entry + 3] = np.uint32(shortest)
            word = (bit + 31) // 32
