"""Which rows did others compute from a document?

Bytes on disk are not trusted: each document's rows carry a checksum that covers the document's
number too, and it is checked whenever they are read (.3 µs where there are few of them). So damage
anywhere, in the numbers of rows as in the rows, is told, and never gives another document's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from birchbark.errors import ArtifactError, InputError
from birchbark.index.arrays import map_array, map_raw
from birchbark.index.attachment_schema import AttachedEntry, AttachmentSchema, RowForm, Rows
from birchbark.index.part_reader import Part, find_documents

Numbers = NDArray[np.int64]
REMEDY = "detach it, and attach it again; `birchbark index verify` finds what is damaged"


def check_of(rows: Rows) -> int:
    """CRC-32 over the rows of one document, array after array."""
    check = 0
    for values in rows.values():
        check = crc32(values, check)
    return check


def salt(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    """What is mixed into the checks of documents by exclusive or: theirs differ by their numbers.

    Being apart from the rows it can be exchanged when a merge gives new numbers, unread rows and
    all: damage that there was is told after the merge as before.
    """
    return (numbers.astype(np.uint64) * np.uint64(2_654_435_761)).astype(np.uint32)


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Inside, what only damage can be is raised as an ArtifactError that names the folder."""
    try:
        yield
    except (OSError, ValueError, IndexError) as broken:
        raise ArtifactError(
            f"damaged attachment: {broken}", where=str(folder), remedy=REMEDY
        ) from broken


class AttachedRows:
    """One folder: the rows of some documents of one part.

    docs: uint32 (documents,), their numbers in the part, rising. starts: (documents + 1, arrays),
    where their rows start in each array. checks: uint32 (documents,). values: of each array.
    """

    def __init__(self, folder: Path, entry: AttachedEntry, schema: AttachmentSchema) -> None:
        """Map the folder that `entry` describes; ArtifactError if a file is missing or damaged."""
        self.folder = folder
        with reading(folder):
            self.docs = map_array(folder / "docs.npy")
            self.starts = map_array(folder / "starts.npy")
            self.checks = map_array(folder / "checks.npy")
            self.values = {
                name: _values(folder / f"rows.{name}", form) for name, form in schema.arrays.items()
            }
            self._check(entry)

    def _check(self, entry: AttachedEntry) -> None:
        """Raise ValueError if the arrays are not as long as they must be."""
        wanted: dict[str, tuple[object, object]] = {
            "docs": (self.docs.shape, (entry.documents,)),
            "checks": (self.checks.shape, (entry.documents,)),
            "starts": (self.starts.shape, (entry.documents + 1, len(entry.rows))),
            "rows": (tuple(map(len, self.values.values())), entry.rows),
            "numbers": ({a.dtype.kind for a in (self.docs, self.starts, self.checks)}, {"u"}),
        }
        for name, (found, right) in wanted.items():
            if found != right:
                raise ValueError(f"{name}: {right} expected, found {found}")

    def __len__(self) -> int:
        """How many documents have rows here, if only none."""
        return len(self.docs)

    def check_order(self) -> None:
        """ArtifactError unless documents and starts rise as they must; reads all of them."""
        with reading(self.folder):
            starts = self.starts.astype(np.int64)
            ends = tuple(starts[-1].tolist())
            if (np.diff(self.docs.astype(np.int64)) <= 0).any():
                raise ValueError("numbers of documents do not rise")
            if starts[0].any() or (np.diff(starts, axis=0) < 0).any():
                raise ValueError("starts of rows do not rise from 0")
            if ends != tuple(map(len, self.values.values())):
                raise ValueError("starts do not end where the rows end")

    def take(self, numbers: Numbers, documents: int) -> list[Rows | None]:
        """The rows of the documents `numbers` of a part of `documents`; None for those not here."""
        at = self._places(numbers, documents)
        there = np.flatnonzero(at >= 0)
        at = at[there]
        with reading(self.folder):
            begins, ends = self.starts[at].tolist(), self.starts[at + 1].tolist()
            checks = (self.checks[at] ^ salt(numbers[there])).tolist()
            found: list[Rows | None] = [None] * len(numbers)
            for i, begin, end, check in zip(there.tolist(), begins, ends, checks, strict=True):
                rows = {
                    name: values[a:b]
                    for (name, values), a, b in zip(self.values.items(), begin, end, strict=True)
                }
                if check_of(rows) != check:  # a slice never leads outside, so this is enough
                    raise ValueError(f"rows of document {numbers[i]} are not as written")
                found[i] = rows
        return found

    def _places(self, numbers: Numbers, documents: int) -> Numbers:
        """Where each of `numbers` stands among the documents here; −1 where it does not."""
        if len(self) == documents:
            return numbers
        wanted = numbers.astype(self.docs.dtype)  # else all of docs would be converted
        at = np.minimum(np.searchsorted(self.docs, wanted), len(self) - 1)
        return np.where(self.docs[at] == wanted, at, -1)


def _values(path: Path, form: RowForm) -> NDArray[Any]:
    return map_raw(path, np.dtype(form.dtype)).reshape(-1, *form.shape)


class Attachment:
    """What one attachment keeps of the documents of an index: a snapshot, as the index is.

    schema: its config, and its arrays. held: for each part of the index, the folders of rows.
    """

    def __init__(
        self, directory: Path, name: str, schema: AttachmentSchema, parts: Sequence[Part]
    ) -> None:
        """Map its files; ArtifactError if one is missing or damaged."""
        self.name, self.schema = name, schema
        self._directory = directory
        self._parts = parts
        self.held = [
            [AttachedRows(part.path / e.name, e, schema) for e in part.entry.attached.get(name, ())]
            for part in parts
        ]

    def rows(self, doc_ids: Sequence[str]) -> list[Rows | None]:
        """Array → rows for each document, views into the files; None where nothing is kept of it.

        InputError for an id that is not in the index, ArtifactError for rows that are damaged.
        """
        positions, numbers = find_documents(self._parts, doc_ids)
        for doc_id, position in zip(doc_ids, positions.tolist(), strict=True):
            if position < 0:
                raise InputError(f"no document {doc_id}", where=str(self._directory))
        found: list[Rows | None] = [None] * len(numbers)
        for position in np.unique(positions).tolist():
            places = np.flatnonzero(positions == position)
            taken = self.rows_in(position, numbers[places])
            for place, rows in zip(places.tolist(), taken, strict=True):
                found[place] = rows
        return found

    def rows_in(self, position: int, numbers: Numbers) -> list[Rows | None]:
        """As `rows`, for documents by their numbers in the part at `position` of the index."""
        found: list[Rows | None] = [None] * len(numbers)
        left = np.arange(len(numbers))
        for held in self.held[position]:
            taken = held.take(numbers[left], self._parts[position].documents)
            for place, rows in zip(left.tolist(), taken, strict=True):
                found[place] = rows
            left = left[[rows is None for rows in taken]]
        return found

    def missing(self, position: int) -> Numbers:
        """Numbers of the documents of the part at `position` that it keeps nothing of, rising."""
        part = self._parts[position]
        missing = np.zeros(part.documents, bool)
        missing[part.live()] = True
        for held in self.held[position]:
            with reading(held.folder):
                missing[held.docs] = False
        return np.flatnonzero(missing)
