"""How do arrays reach the disk and come back without being read, and how do they grow?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Write `values` as a .npy file; a full disk raises the system's own OSError."""
    with path.open("wb") as out:
        np.save(SimpleNamespace(write=out.write), values)  # a file itself would hide the reason


def map_array(path: Path) -> NDArray[Any]:
    """The array in the .npy file at `path`, memory-mapped, as a plain ndarray.

    Raises OSError if it cannot be read, ValueError if it is damaged.
    """
    try:
        return np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except (SyntaxError, TokenError, TypeError) as broken:  # its head is a Python dict
        raise ValueError(f"{path.name} has no head: {broken}") from broken


def map_raw(path: Path, dtype: Any) -> NDArray[Any]:
    """The numbers in the file at `path`, memory-mapped, as a plain ndarray."""
    empty = path.stat().st_size == 0
    found = np.asarray(np.zeros(0, dtype) if empty else np.memmap(path, dtype, "r"))
    found.flags.writeable = False
    return found


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """`values`, 0 and up, as uint32 or else uint64: the smaller that holds them all."""
    return values.astype(np.uint32 if values.max(initial=0) < 1 << 32 else np.uint64)


class Growing:
    """A one-dimensional array that grows at its end. `values` taken before stay as they were."""

    def __init__(self, dtype: Any) -> None:
        self._room = np.zeros(64, dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[Any]:
        """What it holds, not copied."""
        return self._room[: self._size]

    def extend(self, values: Sequence[int]) -> None:
        """Put `values` at the end."""
        size = self._size + len(values)
        if size > len(self._room):
            larger = np.zeros(max(size, 2 * len(self._room)), self._room.dtype)
            larger[: self._size] = self.values
            self._room = larger
        self._room[self._size : size] = values
        self._size = size
