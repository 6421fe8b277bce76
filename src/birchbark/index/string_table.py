"""How are many strings stored in files, read by number, and found by binary search?

`NAME.bytes` contains the UTF-8 of all strings end to end, and `NAME.offsets.npy` where each string
starts. If the strings are not sorted, `NAME.order.npy` contains their numbers in sorted order. The
files are memory-mapped, so nothing is read before it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from birchbark.compiled import compiled
from birchbark.index.arrays import map_array, map_bytes, save_array, smallest_uint
from birchbark.index.similar_strings import similar_strings


def write_strings(path: Path, strings: Sequence[str], *, runs: bool = False) -> None:
    """Write `strings` as a table under the name `path`, with their sorted order if necessary.

    runs: whether the strings consist of sorted runs, each of which is searched separately. Then no
    order is written.
    """
    encoded = [s.encode() for s in strings]
    _sibling(path, ".bytes").write_bytes(b"".join(encoded))
    offsets = np.array([0, *accumulate(map(len, encoded))])
    save_array(_sibling(path, ".offsets.npy"), smallest_uint(offsets))
    order = [] if runs else sorted(range(len(encoded)), key=encoded.__getitem__)
    if not runs and order != list(range(len(encoded))):
        save_array(_sibling(path, ".order.npy"), np.array(order, np.uint32))


def _sibling(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


class StringTable:
    """A table that maps numbers to strings, and strings to numbers."""

    def __init__(self, path: Path) -> None:
        """Map the table that `write_strings` wrote under the name `path`."""
        data = _sibling(path, ".bytes")
        self._view = memoryview(map_bytes(data))
        self._bytes = np.frombuffer(self._view, np.uint8)
        self._offsets = map_array(_sibling(path, ".offsets.npy"))
        if int(self._offsets[-1]) != len(self._view):
            raise ValueError(f"{data.name} does not have the length that its offsets imply")
        order = _sibling(path, ".order.npy")
        self._order = map_array(order) if order.exists() else None

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> str:
        return str(self.raw(number), "utf-8")

    def __iter__(self) -> Iterator[str]:
        """Iterate over all strings in the order of their numbers."""
        return iter(self.take(range(len(self))))

    def take(self, numbers: ArrayLike | range) -> list[str]:
        """Return the strings with these numbers, in this order."""
        positions = np.asarray(numbers, np.int64)
        starts, ends = self._offsets[positions].tolist(), self._offsets[positions + 1].tolist()
        view = self._view
        return [str(view[a:b], "utf-8") for a, b in zip(starts, ends, strict=True)]

    def matches(self, pattern: re.Pattern[str]) -> Iterator[str]:
        """Yield the strings in which `pattern` matches, once for each match.

        All strings are searched at once, end to end, so no match may be longer than a character.
        """
        text, end, position = str(self._view, "utf-8"), 0, 0
        for match in pattern.finditer(text):
            position += len(text[end : match.start()].encode())
            end = match.start()
            yield self[int(np.searchsorted(self._offsets, position, side="right")) - 1]

    def find(self, string: str) -> int | None:
        """Return the number of `string`, the last one if it is repeated; None if it is missing."""
        (number,) = self.find_all([string]).tolist()
        return None if number < 0 else number

    def find_all(
        self, strings: Sequence[str], begin: int = 0, end: int | None = None
    ) -> NDArray[np.int64]:
        """Return the number of each of `strings`; −1 for one that is not in the table.

        A string takes O(log(end − begin)) comparisons.

        begin, end: the range of the sorted order to search; by default, all of it.
        """
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        offsets = np.array([0, *accumulate(map(len, encoded))])
        data = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
        order = self._offsets[:0] if self._order is None else self._order
        numbers = np.empty(len(encoded), np.int64)
        limits = (begin, len(self) if end is None else end)
        _search((self._bytes, self._offsets, order), limits, (data, offsets), numbers)
        return numbers

    def similar(self, string: str, allowed: int, begin: int, end: int) -> dict[str, int]:
        """Return the strings that differ in at most `allowed` letters, and in how many they do.

        begin, end: the range of numbers to look at, which must be sorted; see `similar_strings`.
        """
        table = (self._bytes, self._offsets)
        numbers, differences = similar_strings(table, string, allowed, begin, end)
        return dict(zip(self.take(numbers), differences.tolist(), strict=True))

    def raw(self, number: int) -> bytes:
        """Return the UTF-8 of the string with this number."""
        return bytes(self._view[int(self._offsets[number]) : int(self._offsets[number + 1])])


@compiled
def _search(table: Any, limits: Any, strings: Any, numbers: Any) -> None:
    """Fill `numbers` (n,) with the number of each of n strings, found by binary search.

    table: the table's bytes, its offsets (strings + 1,), and its order (strings,) or an empty
    array. limits: the range of the sorted order to search. strings: the bytes of the strings to
    find, and their offsets (n + 1,).
    """
    stored, stored_offsets, order = table
    wanted, wanted_offsets = strings
    for i in range(len(numbers)):
        begin, size = wanted_offsets[i], wanted_offsets[i + 1] - wanted_offsets[i]
        low, high, equal = limits[0], limits[1], False
        while low < high:
            # Find the string in the middle; a damaged table must not lead outside the arrays.
            middle = (low + high) // 2
            number = np.int64(order[middle]) if len(order) else middle
            if number >= len(stored_offsets) - 1:
                raise ValueError("a string table is damaged")
            start = np.int64(stored_offsets[number])
            length = np.int64(stored_offsets[number + 1]) - start
            if start < 0 or length < 0 or start + length > len(stored):
                raise ValueError("a string table is damaged")
            # Compare byte by byte; a prefix sorts before the longer string.
            same = 0
            while same < min(size, length) and wanted[begin + same] == stored[start + same]:
                same += 1
            smaller = same < length and (
                same == size or wanted[begin + same] < stored[start + same]
            )
            # Continue in one half: after an equal string, so that the last of several is found.
            if smaller:
                high = middle
            else:
                low = middle + 1
                equal = same == size == length
        number = low - 1
        if equal and len(order):
            number = np.int64(order[low - 1])
        numbers[i] = number if equal else -1
