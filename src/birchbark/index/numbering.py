"""Which number has each of many strings, where the same string has the same number?

An open-addressing hash table, compiled. An entry is a string's key, 64 bits, and its number + 1;
zero is free. Up to 7 bytes are their own key, behind a 1 that tells how many they are: one look at
the table finds most words. The key of a longer string is a hash with the highest bit set, and its
bytes are kept once, end to end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.index.compiled import compiled
from birchbark.index.cutting import Pieces

LONGEST, SHORT = 64, 7
BYTE, ONE, HASHED = np.uint64(8), np.uint64(1), np.uint64(1 << 63)
PRIME = np.uint64(0x100000001B3)  # FNV-1's
GOLDEN, UPPER = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)  # Knuth's multiplicative hashing
NUMBERS, HELD, BYTES = 0, 1, 2  # what is counted


class Numbering:
    """Numbers 0, 1, 2 … for strings as they come.

    A string of more than LONGEST bytes is not remembered: it has a new number each time.
    """

    def __init__(self) -> None:
        self._counts = np.zeros(3, np.int64)
        self._table = np.zeros((1 << 10, 2), np.uint64)
        self._starts = np.zeros(1 << 9, np.int64)  # number → where its bytes start
        self._bytes = np.zeros(1 << 12, np.uint8)

    def __len__(self) -> int:
        """How many numbers were given."""
        return int(self._counts[NUMBERS])

    def of(self, pieces: Pieces) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The number of each piece; and which pieces have the numbers that are new, in order."""
        numbers = np.empty(len(pieces.begins), np.uint32)
        fresh = np.empty(len(numbers), np.int64)
        strings = (np.frombuffer(pieces.data, np.uint8), pieces.begins, pieces.ends)
        before, done = len(self), 0
        while True:
            known = (self._counts, self._table, self._starts, self._bytes)
            done = _number(strings, known, before, done, numbers, fresh)
            if done == len(numbers):
                return numbers, fresh[: len(self) - before]
            self._grow()

    def _grow(self) -> None:
        """Double what is full."""
        numbers, held, size = self._counts.tolist()
        if numbers + 1 == len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        if 2 * held == len(self._table):
            self._table = _spread(self._table)
        if size + LONGEST > len(self._bytes):
            self._bytes = np.concatenate([self._bytes, np.zeros_like(self._bytes)])


@compiled
def _number(strings: Any, known: Any, before: int, done: int, numbers: Any, fresh: Any) -> int:
    """Number the strings from `done` on; returns how many are done: all, or `known` is full.

    before: how many numbers were given before the first of these strings.
    """
    data, begins, ends = strings
    counts, table, starts, held = known
    mask = np.uint64(len(table) - 1)
    for i in range(done, len(numbers)):
        begin, size = begins[i], ends[i] - begins[i]
        if (
            counts[NUMBERS] + 1 == len(starts)
            or 2 * counts[HELD] == len(table)
            or counts[BYTES] + LONGEST > len(held)
        ):
            return i
        number = np.int64(-1)
        if size <= LONGEST:
            key = ONE
            if size <= SHORT:
                for at in range(begin, begin + size):
                    key = key << BYTE | np.uint64(data[at])
            else:
                for at in range(begin, begin + size):
                    key = (key ^ np.uint64(data[at])) * PRIME
                key |= HASHED
            slot = (key * GOLDEN) >> UPPER & mask
            while number < 0 and table[slot, 1]:
                if table[slot, 0] == key:
                    number = np.int64(table[slot, 1]) - 1
                    if size > SHORT:
                        start, same = starts[number], 0
                        if starts[number + 1] - start == size:
                            while same < size and data[begin + same] == held[start + same]:
                                same += 1
                        if same < size:
                            number = np.int64(-1)
                slot = (slot + ONE) & mask
            if number < 0:
                table[slot, 0], table[slot, 1] = key, counts[NUMBERS] + 1
                counts[HELD] += 1
                if size > SHORT:
                    held[counts[BYTES] : counts[BYTES] + size] = data[begin : begin + size]
                    counts[BYTES] += size
        if number < 0:
            number = counts[NUMBERS]
            fresh[number - before] = i
            counts[NUMBERS] += 1
            starts[number + 1] = counts[BYTES]
        numbers[i] = number
    return len(numbers)


@compiled
def _spread(table: Any) -> Any:
    """The entries of `table` in one twice as large."""
    larger = np.zeros((2 * len(table), 2), np.uint64)
    mask = np.uint64(len(larger) - 1)
    for i in range(len(table)):
        if table[i, 1]:
            slot = (table[i, 0] * GOLDEN) >> UPPER & mask
            while larger[slot, 1]:
                slot = (slot + ONE) & mask
            larger[slot] = table[i]
    return larger
