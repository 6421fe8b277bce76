"""How are the stored fields of documents compressed, so that one document can be read at a time?

Documents are JSON lines in blocks of about 16 KB, each compressed separately in zlib's format.
`NAME.blocks` contains the blocks end to end. `NAME.starts.npy`, uint64 (blocks + 1, 2), contains
the offset of each block in that file and the number of its first document.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from isal import isal_zlib

from birchbark.errors import ArtifactError
from birchbark.index.arrays import map_array, map_bytes, save_array

BLOCK_BYTES = 16 * 1024
LEVEL = 2  # on a scale of 0 to 3; level 1 is no faster and compresses less

_encode = json.JSONEncoder(ensure_ascii=False).encode


class StoredFieldWriter:
    """Writes stored fields, document by document."""

    def __init__(self, path: Path) -> None:
        """Start the files under the name `path`."""
        self._path = path
        self._blocks = path.with_suffix(".blocks")
        self._blocks.touch(exist_ok=False)
        self._lines: list[bytes] = []
        self._bytes = 0
        self._documents = 0
        self._starts = [(0, 0)]

    def add(self, fields: Mapping[str, str]) -> None:
        """Store the fields of the next document."""
        line = _encode(dict(fields)).encode()
        self._lines.append(line)
        self._bytes += len(line)
        self._documents += 1
        if self._bytes >= BLOCK_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the last block and the starts."""
        if self._lines:
            self._flush()
        save_array(self._path.with_suffix(".starts.npy"), np.array(self._starts, np.uint64))

    def _flush(self) -> None:
        with self._blocks.open("ab") as out:
            out.write(isal_zlib.compress(b"\n".join(self._lines), LEVEL))
            self._starts.append((out.tell(), self._documents))
        self._lines, self._bytes = [], 0


class StoredFieldReader:
    """Reads stored fields by document number."""

    def __init__(self, path: Path) -> None:
        """Map the files that StoredFieldWriter wrote under the name `path`."""
        self._path = path.with_suffix(".blocks")
        starts = map_array(path.with_suffix(".starts.npy"))
        self._offsets: list[int] = starts[:, 0].tolist()
        self._first: list[int] = starts[:, 1].tolist()
        self._bytes = memoryview(map_bytes(self._path))
        if self._offsets[-1] != len(self._bytes):
            raise ValueError(f"{self._path.name} does not have the length that its offsets imply")
        if self._first[0] or self._first != sorted(self._first):
            raise ValueError("the numbers of documents do not ascend")

    def __len__(self) -> int:
        return self._first[-1]

    def take(self, numbers: Iterable[int]) -> dict[int, dict[str, str]]:
        """Return document number → fields for `numbers`; each block is decompressed once."""
        return dict(self.iterate(sorted(numbers)))

    def iterate(self, numbers: Iterable[int]) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield number and fields of each document; one block is in memory at a time.

        numbers: ascending, so that each block is decompressed once.
        """
        lines: list[bytes] = []
        current = -1
        for number in numbers:
            block = bisect_right(self._first, number) - 1
            if block != current:
                current, lines = block, self._block(block)
            yield number, json.loads(lines[number - self._first[block]])

    def _block(self, block: int) -> list[bytes]:
        compressed = self._bytes[self._offsets[block] : self._offsets[block + 1]]
        try:
            lines: list[bytes] = isal_zlib.decompress(compressed).split(b"\n")
        except isal_zlib.error as error:  # type: ignore[misc]
            raise self._damaged(block, str(error)) from error
        if len(lines) != self._first[block + 1] - self._first[block]:
            raise self._damaged(block, "it has another number of documents")
        return lines

    def _damaged(self, block: int, reason: str) -> ArtifactError:
        return ArtifactError(
            f"block {block} is damaged: {reason}",
            where=str(self._path),
            remedy="build the index again",
        )
