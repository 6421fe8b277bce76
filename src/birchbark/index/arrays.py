"""How are arrays written to disk, memory-mapped and extended?"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# The head of a .npy file, version 1. numpy reads it by evaluating it as a Python expression, which
# can fail when several threads do so (before Python 3.11.8).
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '(?P<dtype>[<|>][a-zA-Z]\d{1,3})', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>(?:\d{1,18}(?:, ?|(?=\))))*)\), \} *\n"
)


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Write `values` as a .npy file; a full disk raises the system's own OSError."""
    with path.open("wb") as out:
        # Given a real file, numpy would write with tofile(), whose error omits the reason.
        np.save(SimpleNamespace(write=out.write), values)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to errors of the operating system that lack it."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def map_array(path: Path) -> NDArray[Any]:
    """Memory-map the .npy file at `path` and return it as a plain ndarray.

    Raises OSError if the file cannot be read, ValueError if it is damaged.
    """
    content = map_bytes(path)
    begin = len(_MAGIC) + 2
    if content[: len(_MAGIC)] != _MAGIC or len(content) < begin:
        raise ValueError(f"{path.name} is no array")
    offset = begin + int.from_bytes(content[len(_MAGIC) : begin], "little")
    header = _HEADER.fullmatch(content[begin:offset])
    if not header:
        raise ValueError(f"{path.name} has no valid header")
    shape = tuple(int(length) for length in header["shape"].split(b",") if length.strip())
    try:
        dtype = np.dtype(header["dtype"].decode())
    except TypeError:
        raise ValueError(f"{path.name} has no valid header") from None
    if (found := len(content)) != (right := offset + dtype.itemsize * math.prod(shape)):
        raise ValueError(f"{path.name}: {right} bytes expected, found {found}")
    order: Literal["F", "C"] = "F" if header["fortran"] == b"True" else "C"
    return np.ndarray(shape, dtype, content, offset, order=order)


def map_raw(path: Path, dtype: Any) -> NDArray[Any]:
    """Memory-map a file of numbers without a header; return it as a plain, read-only ndarray."""
    return np.frombuffer(map_bytes(path), dtype)


def map_bytes(path: Path) -> mmap | bytes:
    """Map a file; numpy.memmap would make many more calls of the operating system.

    An empty file cannot be mapped; it is empty bytes.
    """
    with naming(path):
        file = os.open(path, os.O_RDONLY)
        try:
            return mmap(file, 0, access=ACCESS_READ) if os.fstat(file).st_size else b""
        finally:
            os.close(file)


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
