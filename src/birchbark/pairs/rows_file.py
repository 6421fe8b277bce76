"""How are many short arrays, such as token ids or texts, written to a file and mapped from it?"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import ArtifactError
from birchbark.lazy_sequence import LazySequence

STARTS = ".starts"


class RowsWriter:
    """Writes arrays one after another to `path`, and their starts to `path`.starts."""

    def __init__(self, path: Path, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self._values: IO[bytes] = path.open("wb")
        self._starts: IO[bytes] = Path(f"{path}{STARTS}").open("wb")  # noqa: SIM115, see close
        self._end = 0
        self._starts.write(np.zeros(1, "<i8").tobytes())

    def extend(self, rows: Sequence[NDArray[Any]]) -> None:
        """Append arrays (n,) each."""
        if not rows:
            return
        ends = self._end + np.cumsum([len(row) for row in rows], dtype="<i8")
        self._values.write(np.concatenate(rows).astype(self._dtype).tobytes())
        self._starts.write(ends.astype("<i8").tobytes())
        self._end = int(ends[-1])

    def close(self) -> None:
        """Complete both files."""
        with closing(self._starts):
            self._values.close()


class Rows(LazySequence[NDArray[Any]]):
    """Arrays of a file that RowsWriter has written. They are read when they are needed."""

    def __init__(self, path: Path, dtype: str) -> None:
        """Map the files; ArtifactError if they are damaged."""
        self.starts: NDArray[np.int64] = mapped(Path(f"{path}{STARTS}"), "<i8")  # (rows + 1,)
        self.values = mapped(path, dtype)
        if not len(self.starts) or self.starts[-1] != len(self.values):
            raise ArtifactError("damaged: too short or too long", where=str(path))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each array, (rows,)."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def item(self, index: int) -> NDArray[Any]:
        """Return an array."""
        return self.values[self.starts[index] : self.starts[index + 1]]


class Texts(LazySequence[str]):
    """Strings of a file of their UTF-8 bytes. They are read when they are needed."""

    def __init__(self, path: Path) -> None:
        """Map the file; ArtifactError if it is damaged."""
        self._rows = Rows(path, "uint8")

    @property
    def bytes(self) -> NDArray[np.int64]:
        """The number of bytes of each string, (strings,)."""
        return self._rows.lengths

    def __len__(self) -> int:
        return len(self._rows)

    def item(self, index: int) -> str:
        """Return a string."""
        return self._rows[index].tobytes().decode("utf-8", "surrogatepass")


def as_bytes(text: str) -> NDArray[np.uint8]:
    """Return a string as Texts reads it."""
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def mapped(path: Path, dtype: str) -> NDArray[Any]:
    """Map a file of numbers; ArtifactError if it is missing or holds no whole number of them."""
    kind = np.dtype(dtype)
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise ArtifactError("missing file", where=str(path)) from None
    if size % kind.itemsize:
        raise ArtifactError("damaged: too short or too long", where=str(path))
    return np.memmap(path, kind, "r") if size else np.zeros(0, kind)
