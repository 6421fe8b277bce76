"""How are many strings kept in a file, read by number, and found by binary search?

`NAME.bytes` holds the UTF-8 of all strings end to end, `NAME.offsets.npy` where each starts, and,
where the strings are not in sorted order themselves, `NAME.order.npy` the numbers in sorted order.
Nothing is read before it is needed: both files are memory-mapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from birchbark.index.arrays import map_array, map_raw, narrow, save_array
from birchbark.index.compiled import compiled


def write_strings(path: Path, strings: Sequence[str], *, runs: bool = False) -> None:
    """Write `strings` as a table under the name `path`, with the order if they need one.

    runs: they are runs that are sorted, each to be looked up by itself, so no order is needed.
    """
    encoded = [s.encode() for s in strings]
    _sibling(path, ".bytes").write_bytes(b"".join(encoded))
    offsets = np.array([0, *accumulate(map(len, encoded))])
    save_array(_sibling(path, ".offsets.npy"), narrow(offsets))
    order = [] if runs else sorted(range(len(encoded)), key=encoded.__getitem__)
    if not runs and order != list(range(len(encoded))):
        save_array(_sibling(path, ".order.npy"), np.array(order, np.uint32))


def _sibling(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


class StringTable:
    """Strings by number, and numbers by string."""

    def __init__(self, path: Path) -> None:
        """Map the table that `write_strings` wrote under the name `path`."""
        blob = _sibling(path, ".bytes")
        self._bytes = map_raw(blob, np.uint8)
        self._view = memoryview(self._bytes)  # type: ignore[arg-type]
        self._offsets = map_array(_sibling(path, ".offsets.npy"))
        if int(self._offsets[-1]) != blob.stat().st_size:
            raise ValueError(f"{blob.name} is not as long as its offsets say")
        order = _sibling(path, ".order.npy")
        self._order = map_array(order) if order.exists() else None

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> str:
        return str(self._raw(number), "utf-8")

    def __iter__(self) -> Iterator[str]:
        """All strings, in the order of their numbers."""
        return iter(self.take(range(len(self))))

    def take(self, numbers: ArrayLike | range) -> list[str]:
        """The strings of `numbers`, in that order."""
        places = np.asarray(numbers, np.int64)
        starts, ends = self._offsets[places].tolist(), self._offsets[places + 1].tolist()
        view = self._view
        return [str(view[a:b], "utf-8") for a, b in zip(starts, ends, strict=True)]

    def find(self, string: str) -> int | None:
        """The number of `string`, the last of several; None where it is not in the table."""
        (number,) = self.find_all([string]).tolist()
        return None if number < 0 else number

    def find_all(
        self, strings: Sequence[str], begin: int = 0, end: int | None = None
    ) -> NDArray[np.int64]:
        """The number of each of `strings`, −1 for those that are not in the table.

        begin, end: look among these places in sorted order only. Time: log2 of them for each.
        """
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        offsets = np.array([0, *accumulate(map(len, encoded))])
        wanted = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
        order = self._offsets[:0] if self._order is None else self._order
        found = np.empty(len(encoded), np.int64)
        limits = (begin, len(self) if end is None else end)
        _search((self._bytes, self._offsets, order), limits, (wanted, offsets), found)
        return found

    def _raw(self, number: int) -> memoryview:
        return self._view[int(self._offsets[number]) : int(self._offsets[number + 1])]


@compiled
def _search(table: Any, limits: Any, strings: Any, found: Any) -> None:
    """Binary search for each of `strings` (bytes, offsets) in `table` (bytes, offsets, order)."""
    held, held_offsets, order = table
    wanted, wanted_offsets = strings
    for i in range(len(found)):
        begin, size = wanted_offsets[i], wanted_offsets[i + 1] - wanted_offsets[i]
        low, high, equal = limits[0], limits[1], False
        while low < high:
            middle = (low + high) // 2
            number = np.int64(order[middle]) if len(order) else middle
            if number >= len(held_offsets) - 1:
                raise ValueError("a table of strings is damaged")
            start = np.int64(held_offsets[number])
            length = np.int64(held_offsets[number + 1]) - start
            if start < 0 or length < 0 or start + length > len(held):
                raise ValueError("a table of strings is damaged")
            same = 0
            while same < min(size, length) and wanted[begin + same] == held[start + same]:
                same += 1
            smaller = same < length and (same == size or wanted[begin + same] < held[start + same])
            if smaller:
                high = middle
            else:
                low = middle + 1
                equal = same == size == length
        number = low - 1
        if equal and len(order):
            number = np.int64(order[low - 1])
        found[i] = number if equal else -1
