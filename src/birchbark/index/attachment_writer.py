"""How do rows that others compute reach the disk, and from there a merged part?"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import fingerprint, flush
from birchbark.errors import ArtifactError, InputError
from birchbark.index.arrays import narrow, save_array
from birchbark.index.attachment_reader import REMEDY, AttachedRows, Numbers, check_of, salt
from birchbark.index.attachment_schema import AttachedEntry, AttachmentSchema, Rows
from birchbark.index.part_reader import Part
from birchbark.records import Document

Compute = Callable[[Sequence[Document]], Iterable[Mapping[str, NDArray[Any]]]]
READ = 64  # documents read at a time
TOGETHER, CHARACTERS = 256, 4_000_000  # most documents, and about their characters, of one call


@dataclass(frozen=True, slots=True)
class Attaching:
    """What is to be attached, and the function that computes it.

    compute: is given documents, some hundreds at most, and gives the rows of each, in their order:
    array → rows of the form that the schema says. How documents are divided must not matter to it.
    """

    name: str
    schema: AttachmentSchema
    compute: Compute

    def checked(self) -> Attaching:
        """This, with its schema as it will be read again; InputError if it cannot be kept."""
        return replace(self, schema=self.schema.checked(self.name))


class RowWriter:
    """Writes one folder of rows, document after document; what it is, no reader knows yet."""

    def __init__(self, folder: Path, schema: AttachmentSchema) -> None:
        """Start the files in the new folder `folder`."""
        folder.mkdir()
        self._folder = folder
        self._arrays = list(schema.arrays)
        self._docs = [np.zeros(0, np.uint32)]
        self._checks = [np.zeros(0, np.uint32)]
        self._counts = [np.zeros((1, len(self._arrays)), np.int64)]
        for name in self._arrays:
            self._path(name).touch(exist_ok=False)

    def _path(self, name: str) -> Path:
        return self._folder / f"rows.{name}"

    def add(self, docs: Numbers, counts: Numbers, checks: NDArray[np.uint32]) -> None:
        """The next documents: numbers, rising, counts of rows (documents, arrays), and checks."""
        self._docs.append(docs.astype(np.uint32))
        self._counts.append(counts)
        self._checks.append(checks)

    def write(self, name: str, rows: Iterable[NDArray[Any]]) -> None:
        """The rows of these documents in the array `name`, end to end in any pieces."""
        with self._path(name).open("ab") as out:
            for piece in rows:
                out.write(np.ascontiguousarray(piece).data)

    def close(self) -> AttachedEntry:
        """Write what is left, and ask the disk to keep it all; the folder's entry."""
        docs, starts = np.concatenate(self._docs), np.cumsum(np.concatenate(self._counts), axis=0)
        save_array(self._folder / "docs.npy", docs)
        save_array(self._folder / "starts.npy", narrow(starts))
        save_array(self._folder / "checks.npy", np.concatenate(self._checks))
        for path in (*self._folder.iterdir(), self._folder, self._folder.parent):
            flush(path)
        rows = tuple(starts[-1].tolist())
        return AttachedEntry(self._folder.name, len(docs), rows, checksum(self._folder))


@contextmanager
def new_rows(folder: Path, schema: AttachmentSchema) -> Iterator[RowWriter]:
    """A writer to the new folder `folder`, which is removed if the block raises."""
    writer = RowWriter(folder, schema)
    try:
        yield writer
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def checksum(folder: Path) -> str:
    """Over the files of a folder of rows, in the order of their names."""
    return fingerprint(*sorted(folder.iterdir()))


def compute_rows(
    folder: Path,
    part: Part,
    numbers: Numbers,
    attaching: Attaching,
    advance: Callable[[int], object],
) -> AttachedEntry:
    """Compute and write the rows of the documents `numbers` of `part`, which rise.

    Memory holds one batch of documents and their rows. If it fails, the folder is removed. Raises
    InputError if the rows are not of the form that they must be.
    """
    with new_rows(folder, attaching.schema) as writer:
        for some, documents in _batches(part, numbers):
            rows = _computed(attaching, documents)
            counts = np.array([[len(values) for values in of.values()] for of in rows])
            checks = np.array([check_of(of) for of in rows], np.uint32)
            writer.add(some, counts, checks ^ salt(some))
            for name in attaching.schema.arrays:
                writer.write(name, (of[name] for of in rows))
            advance(len(documents))
        return writer.close()


def _batches(part: Part, numbers: Numbers) -> Iterator[tuple[Numbers, list[Document]]]:
    """The documents `numbers` and these, so many at a time as one call is given."""
    first, documents, characters = 0, list[Document](), 0
    for begin in range(0, len(numbers), READ):
        some = numbers[begin : begin + READ].tolist()
        texts = part.texts.take(some)
        for number, doc_id in zip(some, part.doc_ids.take(some), strict=True):
            if len(documents) >= TOGETHER or characters >= CHARACTERS:
                yield numbers[first : first + len(documents)], documents
                first, documents, characters = first + len(documents), [], 0
            documents.append(Document(doc_id, texts[number]))
            characters += sum(map(len, texts[number].values()))
    if documents:
        yield numbers[first:], documents


def _computed(attaching: Attaching, documents: Sequence[Document]) -> list[Rows]:
    """What `compute` gives for them, its arrays in the order of the schema."""
    found = list(attaching.compute(documents))
    where = f"attachment {attaching.name}"
    if len(found) != len(documents):
        wanted = f"rows for each of {len(documents)} documents"
        raise InputError("cannot attach", where=where, wanted=wanted, found=f"for {len(found)}")
    arrays = attaching.schema.arrays
    for document, rows in zip(documents, found, strict=True):
        of = f"{where}: document {document.doc_id}"
        if rows.keys() != arrays.keys():
            raise InputError("other arrays", where=of, wanted=str([*arrays]), found=str([*rows]))
        for name, form in arrays.items():
            if not form.fits(rows[name]):
                known = f"{rows[name].dtype} {rows[name].shape}"
                raise InputError(f"rows of {name}", where=of, wanted=str(form), found=known)
    return [{name: np.ascontiguousarray(rows[name]) for name in arrays} for rows in found]


def copy_rows(
    folder: Path, schema: AttachmentSchema, sources: Sequence[tuple[AttachedRows, Numbers]]
) -> AttachedEntry | None:
    """Write into the new folder `folder` the rows that `sources` hold; None if there are none.

    sources: folders, and for each document there its new number, −1 to leave it out. Rows are
    copied unread, their checks with them. A document that has rows in two folders is an
    ArtifactError.
    """
    owner, place, number = _living(sources)
    if not len(number):
        return None
    if (np.diff(number) == 0).any():
        where = str(sources[0][0].folder.parent)
        raise ArtifactError("a document has rows in two folders", where=where, remedy=REMEDY)
    begins, ends, checks = _bounds([held for held, _ in sources], owner, place)
    cuts = np.flatnonzero((np.diff(owner) != 0) | (np.diff(place) != 1)) + 1
    first, last = np.append(0, cuts), np.append(cuts, len(number)) - 1
    with new_rows(folder, schema) as writer:
        writer.add(number, ends - begins, checks ^ salt(number))
        for column, name in enumerate(schema.arrays):
            values = [held.values[name] for held, _ in sources]
            edges = (owner[first], begins[first, column], ends[last, column])
            runs = zip(*(edge.tolist() for edge in edges), strict=True)
            writer.write(name, (values[source][a:b] for source, a, b in runs))
        return writer.close()


def _living(sources: Sequence[tuple[AttachedRows, Numbers]]) -> tuple[Numbers, Numbers, Numbers]:
    """By new number, each document that is kept: its source, its place there, and that number."""
    owner = np.repeat(np.arange(len(sources)), [len(held) for held, _ in sources])
    nothing = np.zeros(0, np.int64)
    place = np.concatenate([nothing, *(np.arange(len(held)) for held, _ in sources)])
    number = np.concatenate([nothing, *(numbers for _, numbers in sources)])
    order = np.argsort(number, kind="stable")[np.count_nonzero(number < 0) :]
    return owner[order], place[order], number[order]


def _bounds(
    sources: Sequence[AttachedRows], owner: Numbers, place: Numbers
) -> tuple[Numbers, Numbers, NDArray[np.uint32]]:
    """Where the rows of documents begin and end, (documents, arrays), and their checks unsalted."""
    begins = np.empty((len(owner), len(sources[0].values)), np.int64)
    ends, checks = np.empty_like(begins), np.empty(len(owner), np.uint32)
    for i, held in enumerate(sources):
        mine = owner == i
        at = place[mine]
        begins[mine], ends[mine] = held.starts[at], held.starts[at + 1]
        checks[mine] = held.checks[at] ^ salt(held.docs[at])
    return begins, ends, checks
