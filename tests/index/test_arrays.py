"""Are arrays read as numpy writes them, by many threads, and damage to their heads told?"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from birchbark.index.arrays import map_array, save_array


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "int64", "float16", "float32", "bool", "S3"])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (3, 5), (0, 4), (2, 3, 4)])
def test_arrays_are_read_as_they_were_saved(tmp_path: Path, dtype: str, shape: tuple[int]) -> None:
    """They are read alike by numpy, and stored in the same order whatever it was in memory."""
    values = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    save_array(tmp_path / "a.npy", values)
    read = map_array(tmp_path / "a.npy")
    assert (read.dtype, read.shape) == (values.dtype, values.shape)
    assert np.array_equal(read, values)
    assert np.array_equal(np.load(tmp_path / "a.npy"), values)
    save_array(tmp_path / "b.npy", np.asfortranarray(values))
    assert np.array_equal(map_array(tmp_path / "b.npy"), values)


def test_heads_are_read_by_many_threads(tmp_path: Path) -> None:
    """numpy's own reader can fail here before Python 3.11.8."""
    save_array(tmp_path / "a.npy", np.arange(5))
    with ThreadPoolExecutor(6) as pool:
        read = [pool.submit(map_array, tmp_path / "a.npy") for _ in range(3000)]
    assert all(one.result().sum() == 10 for one in read)


def test_damaged_heads_and_lengths_are_errors(tmp_path: Path) -> None:
    """No head, however damaged, takes long to read."""
    save_array(tmp_path / "a.npy", np.arange(100, dtype=np.int32))
    whole = (tmp_path / "a.npy").read_bytes()
    damaged = [whole[:n] for n in (0, 5, 9, 40, 128, len(whole) - 1)]
    damaged += [whole + b"x", whole.replace(b"(100,)", b"(101,)"), whole.replace(b"<i4", b"<i8")]
    damaged += [whole.replace(b"'<i4'", b"'|O8'"), whole.replace(b"NUMPY", b"NUMPX")]
    damaged.append(whole.replace(b"(100,)", b"9" * 4301 + b","))
    digits = b"9" * 57 + b"x"  # which could be divided into numbers in very many ways
    damaged.append(whole.replace(b"(100,), }" + b" " * 50, b"(" + digits))
    assert damaged[-1] != whole
    for content in damaged:
        (tmp_path / "b.npy").write_bytes(content)
        with pytest.raises((ValueError, TypeError)):
            map_array(tmp_path / "b.npy")


def test_an_array_of_an_impossible_type_is_damage(tmp_path: Path) -> None:
    """The error is that of any other damage to the head."""
    save_array(tmp_path / "a.npy", np.arange(4, dtype="<u4"))
    raw = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(raw.replace(b"<u4", b"<e4"))
    with pytest.raises(ValueError, match="no valid header"):
        map_array(tmp_path / "a.npy")
