"""How are the attached rows of a document read?

Files may be damaged, so each document's rows have a checksum, which also covers the document's
number. It is verified on every read, which takes 0.3 µs for a few rows. Damage to row numbers or
rows therefore raises an error; it never returns another document's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from birchbark.errors import InputError, reporting_damage
from birchbark.index.arrays import map_array, map_raw
from birchbark.index.attachment_schema import AttachmentSchema, RowFolderEntry, RowForm, Rows
from birchbark.index.part import Part, locate_documents

Numbers = NDArray[np.int64]
REMEDY = "detach and attach it again; `birchbark index stats --verify` lists damaged files"


def rows_checksum(rows: Rows) -> int:
    """Return the CRC-32 of the rows of one document, over all arrays in order."""
    checksum = 0
    for values in rows.values():
        checksum = crc32(values, checksum)
    return checksum


def document_salt(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    """Return a salt for each document number, to be XORed with the checksum of its rows.

    A salt makes the checksum depend on the document's number. A merge renumbers documents and
    replaces the salts without reading the rows, so existing damage is still detected afterwards.
    """
    return (numbers.astype(np.uint64) * np.uint64(2_654_435_761)).astype(np.uint32)


class RowFolder:
    """One folder, with the rows of some documents of one part.

    docs: uint32 (documents,), the documents' numbers in the part, in ascending order. starts:
    unsigned (documents + 1, arrays), each document's first row in each array. checksums: uint32
    (documents,), salted. values: array name → (rows, *shape).
    """

    def __init__(self, folder: Path, entry: RowFolderEntry, schema: AttachmentSchema) -> None:
        """Map the folder that `entry` describes; ArtifactError if a file is missing or damaged."""
        self.path = folder
        with self.reporting_damage():
            self.docs = map_array(folder / "docs.npy")
            self.starts = map_array(folder / "starts.npy")
            self.checksums = map_array(folder / "checks.npy")
            self.values = {
                name: _map_rows(folder / f"rows.{name}", form)
                for name, form in schema.arrays.items()
            }
            self._check(entry)

    def reporting_damage(self) -> AbstractContextManager[None]:
        """Turn errors that only damage can cause into an ArtifactError that names the folder."""
        return reporting_damage("attachment", self.path, REMEDY)

    def _check(self, entry: RowFolderEntry) -> None:
        """Raise ValueError if an array has the wrong shape or dtype."""
        expected: dict[str, tuple[object, object]] = {
            "docs": (self.docs.shape, (entry.documents,)),
            "checks": (self.checksums.shape, (entry.documents,)),
            "starts": (self.starts.shape, (entry.documents + 1, len(entry.rows))),
            "rows": (tuple(map(len, self.values.values())), entry.rows),
            "numbers": ({a.dtype.kind for a in (self.docs, self.starts, self.checksums)}, {"u"}),
        }
        for name, (actual, right) in expected.items():
            if actual != right:
                raise ValueError(f"{name}: {right} expected, found {actual}")

    def __len__(self) -> int:
        """The number of documents in the folder, including documents with zero rows."""
        return len(self.docs)

    def check_order(self) -> None:
        """Raise ArtifactError unless document numbers and row starts ascend; read all of them."""
        with self.reporting_damage():
            starts = self.starts.astype(np.int64)
            ends = tuple(starts[-1].tolist())
            if (np.diff(self.docs.astype(np.int64)) <= 0).any():
                raise ValueError("document numbers do not rise")
            if starts[0].any() or (np.diff(starts, axis=0) < 0).any():
                raise ValueError("row starts do not rise from 0")
            if ends != tuple(map(len, self.values.values())):
                raise ValueError("the last row start is not the number of rows")

    def take(self, numbers: Numbers, documents: int) -> list[Rows | None]:
        """Return the rows of each document in `numbers`; None if it is not in this folder.

        documents: the number of documents in the part. Raises ArtifactError if rows are damaged.
        """
        positions = self._positions(numbers, documents)
        covered = np.flatnonzero(positions >= 0)
        positions = positions[covered]
        with self.reporting_damage():
            begins, ends = self.starts[positions].tolist(), self.starts[positions + 1].tolist()
            checksums = (self.checksums[positions] ^ document_salt(numbers[covered])).tolist()
            result: list[Rows | None] = [None] * len(numbers)
            for i, begin, end, checksum in zip(
                covered.tolist(), begins, ends, checksums, strict=True
            ):
                rows = {
                    name: values[a:b]
                    for (name, values), a, b in zip(self.values.items(), begin, end, strict=True)
                }
                # A slice cannot leave the array, so it suffices to verify the checksum.
                if rows_checksum(rows) != checksum:
                    raise ValueError(f"rows of document {numbers[i]} have a wrong checksum")
                result[i] = rows
        return result

    def _positions(self, numbers: Numbers, documents: int) -> Numbers:
        """Return the position of each of `numbers` in `docs`; −1 if it is not there."""
        if len(self) == documents:
            return numbers
        wanted = numbers.astype(self.docs.dtype)  # otherwise numpy would convert all of `docs`
        positions = np.minimum(np.searchsorted(self.docs, wanted), len(self) - 1)
        return np.where(self.docs[positions] == wanted, positions, -1)


def _map_rows(path: Path, form: RowForm) -> NDArray[Any]:
    return map_raw(path, np.dtype(form.dtype)).reshape(-1, *form.shape)


class Attachment:
    """A snapshot of one attachment of an index.

    schema: its config and arrays. folders: the folders of rows for each part of the index.
    """

    def __init__(
        self, directory: Path, name: str, schema: AttachmentSchema, parts: Sequence[Part]
    ) -> None:
        """Map the files of the attachment; ArtifactError if one is missing or damaged."""
        self.name, self.schema = name, schema
        self._directory = directory
        self._parts = parts
        self.folders = [
            [RowFolder(part.path / e.name, e, schema) for e in part.entry.attached.get(name, ())]
            for part in parts
        ]

    def rows(self, doc_ids: Sequence[str]) -> list[Rows | None]:
        """Return array name → rows (views) for each document; None if it is not attached.

        Raises InputError for an id that is not in the index, ArtifactError for damaged rows.
        """
        positions, numbers = locate_documents(self._parts, doc_ids)
        for doc_id, position in zip(doc_ids, positions.tolist(), strict=True):
            if position < 0:
                raise InputError(f"no document {doc_id}", where=str(self._directory))
        result: list[Rows | None] = [None] * len(numbers)
        for position in np.unique(positions).tolist():
            requests = np.flatnonzero(positions == position)
            taken = self.rows_in(position, numbers[requests])
            for request, rows in zip(requests.tolist(), taken, strict=True):
                result[request] = rows
        return result

    def rows_in(self, position: int, numbers: Numbers) -> list[Rows | None]:
        """Return array name → rows for the documents `numbers` of the part at `position`.

        See `rows`.
        """
        result: list[Rows | None] = [None] * len(numbers)
        pending = np.arange(len(numbers))
        for folder in self.folders[position]:
            taken = folder.take(numbers[pending], self._parts[position].documents)
            for request, rows in zip(pending.tolist(), taken, strict=True):
                result[request] = rows
            pending = pending[[rows is None for rows in taken]]
        return result

    def missing(self, position: int) -> Numbers:
        """Return the numbers of live documents that are not attached in the part at `position`.

        The numbers ascend.
        """
        part = self._parts[position]
        missing = np.zeros(part.documents, bool)
        missing[part.live_numbers()] = True
        for folder in self.folders[position]:
            with folder.reporting_damage():
                missing[folder.docs] = False
        return np.flatnonzero(missing)
