"""How are arrays written to disk, memory-mapped and extended?"""

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
        # Given a real file, numpy would write with tofile(), whose error omits the reason.
        np.save(SimpleNamespace(write=out.write), values)


def map_array(path: Path) -> NDArray[Any]:
    """Memory-map the .npy file at `path` and return it as a plain ndarray.

    Raises OSError if the file cannot be read, ValueError if it is damaged.
    """
    try:
        return np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except (SyntaxError, TokenError, TypeError) as error:  # the header is a Python dict
        raise ValueError(f"{path.name} has no valid header: {error}") from error


def map_raw(path: Path, dtype: Any) -> NDArray[Any]:
    """Memory-map a file of numbers without a header; return it as a plain, read-only ndarray."""
    empty = path.stat().st_size == 0  # an empty file cannot be mapped
    values = np.asarray(np.zeros(0, dtype) if empty else np.memmap(path, dtype, "r"))
    values.flags.writeable = False
    return values


def smallest_uint(values: NDArray[Any]) -> NDArray[Any]:
    """Convert non-negative `values` to uint32 if they fit, else to uint64."""
    return values.astype(np.uint32 if values.max(initial=0) < 1 << 32 else np.uint64)


class GrowingArray:
    """A one-dimensional array that can be extended.

    Views that `values` has returned stay valid and do not change.
    """

    def __init__(self, dtype: Any) -> None:
        self._buffer = np.zeros(64, dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[Any]:
        """The current values, as a view."""
        return self._buffer[: self._size]

    def extend(self, values: Sequence[int]) -> None:
        """Append `values`."""
        size = self._size + len(values)
        if size > len(self._buffer):
            larger = np.zeros(max(size, 2 * len(self._buffer)), self._buffer.dtype)
            larger[: self._size] = self.values
            self._buffer = larger
        self._buffer[self._size : size] = values
        self._size = size
