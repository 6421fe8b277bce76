"""How do equal strings get the same number, for millions of strings?

They are looked up in an open-addressing hash table, in compiled code. A slot contains a string's
64-bit key and its number + 1; 0 marks a free slot. A string of up to 7 bytes is its own key, with a
leading 1 that encodes its length, so most words are found in the first slot. The key of a longer
string is a hash with the highest bit set; its bytes are stored as well, and compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.compiled import compiled
from birchbark.index.word_spans import WordSpans

LONGEST, SHORT = 64, 7  # largest size in bytes of a string in the table, and of one that is a key
BYTE, ONE, HASHED = np.uint64(8), np.uint64(1), np.uint64(1 << 63)
PRIME = np.uint64(0x100000001B3)  # the prime of the hash function FNV-1a
GOLDEN, UPPER = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)  # Knuth's multiplicative hashing
NUMBERS, SLOTS, BYTES = 0, 1, 2  # positions in `counts`: numbers assigned, slots and bytes used


class StringIds:
    """Assigns the numbers 0, 1, 2, … to strings in the order of their first occurrence.

    A string of more than LONGEST bytes is not stored, so it gets a new number each time.
    """

    def __init__(self) -> None:
        self._counts = np.zeros(3, np.int64)
        self._table = np.zeros((1 << 10, 2), np.uint64)  # slot → key, number + 1
        self._starts = np.zeros(1 << 9, np.int64)  # number → where its bytes start
        self._bytes = np.zeros(1 << 12, np.uint8)

    def __len__(self) -> int:
        """The number of numbers assigned so far."""
        return int(self._counts[NUMBERS])

    def assign(self, spans: WordSpans) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the number of each span, (spans,), and the positions of the new strings, (new,).

        The positions are in the order of the new numbers.
        """
        numbers = np.empty(len(spans.begins), np.uint32)
        new = np.empty(len(numbers), np.int64)
        strings = (np.frombuffer(spans.data, np.uint8), spans.begins, spans.ends)
        before, done = len(self), 0
        while True:
            known = (self._counts, self._table, self._starts, self._bytes)
            done = _assign(strings, known, before, done, numbers, new)
            if done == len(numbers):
                return numbers, new[: len(self) - before]
            self._grow()

    def _grow(self) -> None:
        """Double each array that is full."""
        numbers, slots, size = self._counts.tolist()
        if numbers + 1 == len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        if 2 * slots == len(self._table):
            self._table = _rehash(self._table)
        if size + LONGEST > len(self._bytes):
            self._bytes = np.concatenate([self._bytes, np.zeros_like(self._bytes)])


@compiled
def _assign(strings: Any, known: Any, before: int, done: int, numbers: Any, new: Any) -> int:
    """Number the strings from position `done` on, until an array of `known` is full.

    strings: data, uint8 (bytes,); begins and ends, (n,). known: the arrays of StringIds. before:
    the number of distinct strings before position 0. numbers, new: (n,), filled with the results
    of `StringIds.assign`. Returns the position of the first string without a number.
    """
    data, begins, ends = strings
    counts, table, starts, stored = known
    mask = np.uint64(len(table) - 1)
    for i in range(done, len(numbers)):
        begin, size = begins[i], ends[i] - begins[i]
        # Stop if there might be no space for the next string.
        if (
            counts[NUMBERS] + 1 == len(starts)
            or 2 * counts[SLOTS] == len(table)
            or counts[BYTES] + LONGEST > len(stored)
        ):
            return i
        number = np.int64(-1)
        if size <= LONGEST:
            # Compute the key: the bytes themselves, or a hash of them.
            key = ONE
            if size <= SHORT:
                for at in range(begin, begin + size):
                    key = key << BYTE | np.uint64(data[at])
            else:
                for at in range(begin, begin + size):
                    key = (key ^ np.uint64(data[at])) * PRIME
                key |= HASHED
            # Probe slots until the string or a free slot is found.
            slot = (key * GOLDEN) >> UPPER & mask
            while number < 0 and table[slot, 1]:
                if table[slot, 0] == key:
                    number = np.int64(table[slot, 1]) - 1
                    if size > SHORT:  # equal hashes: compare the bytes
                        start, same = starts[number], 0
                        if starts[number + 1] - start == size:
                            while same < size and data[begin + same] == stored[start + same]:
                                same += 1
                        if same < size:
                            number = np.int64(-1)
                slot = (slot + ONE) & mask
            # Store a new string in the free slot.
            if number < 0:
                table[slot, 0], table[slot, 1] = key, counts[NUMBERS] + 1
                counts[SLOTS] += 1
                if size > SHORT:
                    for at in range(size):  # assigning slices would take a second to compile
                        stored[counts[BYTES] + at] = data[begin + at]
                    counts[BYTES] += size
        # Assign the next number to a new string.
        if number < 0:
            number = counts[NUMBERS]
            new[number - before] = i
            counts[NUMBERS] += 1
            starts[number + 1] = counts[BYTES]
        numbers[i] = number
    return len(numbers)


@compiled
def _rehash(table: Any) -> Any:
    """Return a table of twice as many slots with the entries of `table`, (slots, 2)."""
    larger = np.zeros((2 * len(table), 2), np.uint64)
    mask = np.uint64(len(larger) - 1)
    for i in range(len(table)):
        if table[i, 1]:
            slot = (table[i, 0] * GOLDEN) >> UPPER & mask
            while larger[slot, 1]:
                slot = (slot + ONE) & mask
            # Assigning rows would take two seconds to compile.
            larger[slot, 0], larger[slot, 1] = table[i, 0], table[i, 1]
    return larger
