"""Which of many millions of hashes have occurred before? A table of a few bytes per hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from birchbark.compiled import compiled

FIRST_CAPACITY = 1 << 10
LOAD = 0.6  # share of places that are taken before the table grows
EMPTY = -1

Hashes = NDArray[np.int64]  # (n, width), each ≥ 0
Values = NDArray[np.int32]


class HashTable:
    """A map from hashes to integers from 0 to 2³¹ − 1.

    An entry takes 20 to 40 bytes (width 1), or 33 to 67 (width 2).
    """

    def __init__(self, width: int = 1) -> None:
        """width: the number of 63-bit integers per hash."""
        self._hashes: Hashes = np.zeros((FIRST_CAPACITY, width), np.int64)
        self._values: Values = np.full(FIRST_CAPACITY, EMPTY, np.int32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def numbers(self, hashes: Hashes) -> Values:
        """Return the value of each hash (n,); new hashes get the numbers from len(self)."""
        self._reserve(len(hashes))
        numbers: Values
        numbers, self._size = _numbers(self._hashes, self._values, hashes, self._size)
        return numbers

    def find(self, hashes: Hashes) -> Values:
        """Return the value of each hash (n,); EMPTY for a hash that has none."""
        values: Values = _find(self._hashes, self._values, hashes)
        return values

    def set_new(self, hashes: Hashes, values: Values) -> Values:
        """Set the values (n,) of hashes (n, width) that have none.

        Returns the values that they had before, (n,); EMPTY for a hash that is new. The same hash
        may occur twice.
        """
        self._reserve(len(hashes))
        before: Values
        before, self._size = _set_new(self._hashes, self._values, hashes, values, self._size)
        return before

    def _reserve(self, count: int) -> None:
        capacity = len(self._values)
        while self._size + count > LOAD * capacity:
            capacity *= 2
        if capacity > len(self._values):
            hashes = np.zeros((capacity, self._hashes.shape[1]), np.int64)
            values = np.full(capacity, EMPTY, np.int32)
            _copy(self._hashes, self._values, hashes, values)
            self._hashes, self._values = hashes, values


def hashes_of(texts: Iterable[str], width: int = 1) -> Hashes:
    """Return the hashes (n, width) of strings.

    Among ten million hashes of width 1 two are equal with a probability of 1 in 180,000.
    """
    digests = b"".join(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8 * width).digest()
        for text in texts
    )
    return (np.frombuffer(digests, "<u8") >> np.uint64(1)).astype(np.int64).reshape(-1, width)


@compiled
def _place(hashes: Hashes, values: Values, one: Hashes) -> int:
    """Return where a hash is in the table, or the empty place where it belongs."""
    mask = len(values) - 1
    place = one[0] & mask
    while values[place] != EMPTY:
        equal = True
        for column in range(hashes.shape[1]):
            equal = equal and hashes[place, column] == one[column]
        if equal:
            break
        place = (place + 1) & mask
    return int(place)


@compiled
def _find(hashes: Hashes, values: Values, wanted: Hashes) -> Values:
    found = np.empty(len(wanted), np.int32)
    for i in range(len(wanted)):
        found[i] = values[_place(hashes, values, wanted[i])]
    return found


@compiled
def _numbers(hashes: Hashes, values: Values, new: Hashes, size: int) -> tuple[Values, int]:
    numbers = np.empty(len(new), np.int32)
    for i in range(len(new)):
        place = _place(hashes, values, new[i])
        if values[place] == EMPTY:
            hashes[place] = new[i]
            values[place] = size
            size += 1
        numbers[i] = values[place]
    return numbers, size


@compiled
def _set_new(
    hashes: Hashes, values: Values, new: Hashes, new_values: Values, size: int
) -> tuple[Values, int]:
    before = np.empty(len(new), np.int32)
    for i in range(len(new)):
        place = _place(hashes, values, new[i])
        before[i] = values[place]
        if before[i] == EMPTY:
            hashes[place] = new[i]
            values[place] = new_values[i]
            size += 1
    return before, size


@compiled
def _copy(hashes: Hashes, values: Values, new_hashes: Hashes, new_values: Values) -> None:
    for i in range(len(values)):
        if values[i] != EMPTY:
            place = _place(new_hashes, new_values, hashes[i])
            new_hashes[place] = hashes[i]
            new_values[place] = values[i]
