"""How are many strings kept in a file, read by number, and found by binary search?

`NAME.bytes` holds the UTF-8 of all strings end to end, `NAME.offsets.npy` where each starts, and,
where the strings are not in sorted order themselves, `NAME.order.npy` the numbers in sorted order.
Nothing is read before it is needed: both files are memory-mapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def write_strings(path: Path, strings: Sequence[str]) -> None:
    """Write `strings` as a table under the name `path`, with the order if they need one."""
    encoded = [s.encode() for s in strings]
    offsets = np.zeros(len(encoded) + 1, np.uint64)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    _sibling(path, ".bytes").write_bytes(b"".join(encoded))
    np.save(_sibling(path, ".offsets.npy"), offsets)
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    if order != list(range(len(encoded))):
        np.save(_sibling(path, ".order.npy"), np.array(order, np.uint32))


def _sibling(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def map_array(path: Path) -> NDArray[np.generic]:
    """The array in the .npy file at `path`, memory-mapped, as a plain ndarray."""
    return np.asarray(np.load(path, mmap_mode="r"))


class StringTable:
    """Strings by number, and numbers by string."""

    def __init__(self, path: Path) -> None:
        """Map the table that `write_strings` wrote under the name `path`."""
        blob = _sibling(path, ".bytes")
        empty = blob.stat().st_size == 0
        self._bytes = np.zeros(0, np.uint8) if empty else np.memmap(blob, np.uint8, "r")
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

    def take(self, numbers: Iterable[int]) -> list[str]:
        """The strings of `numbers`, in that order."""
        return [str(self._raw(number), "utf-8") for number in numbers]

    def find(self, string: str) -> int | None:
        """The number of `string`, the last of several; None where it is not in the table.

        Time: log2 of the table.
        """
        wanted, order = string.encode("utf-8", "surrogatepass"), self._order
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if wanted < bytes(self._raw(middle if order is None else int(order[middle]))):
                high = middle
            else:
                low = middle + 1
        if low == 0:
            return None
        number = low - 1 if order is None else int(order[low - 1])
        return number if self._raw(number) == wanted else None

    def _raw(self, number: int) -> memoryview:
        return self._view[int(self._offsets[number]) : int(self._offsets[number + 1])]
