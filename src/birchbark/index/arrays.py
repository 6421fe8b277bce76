"""How do arrays reach the disk, and come back without being read?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Write `values` as a .npy file; a full disk raises the system's own OSError."""
    with path.open("wb") as out:
        np.save(SimpleNamespace(write=out.write), values)  # a file itself would hide the reason


def map_array(path: Path) -> NDArray[Any]:
    """The array in the .npy file at `path`, memory-mapped, as a plain ndarray."""
    return np.asarray(np.load(path, mmap_mode="r"))


def map_raw(path: Path, dtype: Any) -> NDArray[Any]:
    """The numbers in the file at `path`, memory-mapped, as a plain ndarray."""
    empty = path.stat().st_size == 0
    found = np.asarray(np.zeros(0, dtype) if empty else np.memmap(path, dtype, "r"))
    found.flags.writeable = False
    return found


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """`values`, 0 and up, as uint32 or else uint64: the smaller that holds them all."""
    return values.astype(np.uint32 if values.max(initial=0) < 1 << 32 else np.uint64)
