"""How are computed rows written to disk, and copied into a merged part?"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import fingerprint
from birchbark.errors import ArtifactError, InputError
from birchbark.index.arrays import save_array, smallest_uint
from birchbark.index.attachment_reader import (
    REMEDY,
    Numbers,
    RowFolder,
    document_salt,
    rows_checksum,
)
from birchbark.index.attachment_schema import AttachmentSchema, RowFolderEntry, Rows
from birchbark.index.part import Part
from birchbark.records import Document
from birchbark.systems import flush

NewRows = Mapping[str, NDArray[Any]]  # array name → the rows of one document, not yet checked
ComputeRows = Callable[[Sequence[Document]], Iterable[NewRows]]
BATCH_DOCUMENTS = 256  # in one call of `compute`
BATCH_CHARACTERS = 200_000  # in one call of `compute`, approximately: a few seconds of BERT
COMMIT_SECONDS = 30.0  # so much work is lost, at most, if the process is killed


@dataclass(frozen=True, slots=True)
class AttachmentJob:
    """An attachment to be computed: its name, its schema, and the function that computes it.

    compute: takes at most a few hundred documents and returns array name → rows for each of them,
    in order. Rows have the form in the schema, and must not depend on how documents are batched.
    """

    name: str
    schema: AttachmentSchema
    compute: ComputeRows

    def checked(self) -> AttachmentJob:
        """Return this job with its schema as it will be read back; InputError if invalid."""
        return replace(self, schema=self.schema.checked(self.name))


class RowWriter:
    """Writes one folder of rows. Readers do not see it until a manifest names it."""

    def __init__(self, folder: Path, schema: AttachmentSchema) -> None:
        """Create `folder` and empty files for the arrays."""
        folder.mkdir()
        self._folder = folder
        self._arrays = list(schema.arrays)
        self._docs = [np.zeros(0, np.uint32)]
        self._checksums = [np.zeros(0, np.uint32)]
        self._counts = [np.zeros((1, len(self._arrays)), np.int64)]
        for name in self._arrays:
            self._path(name).touch(exist_ok=False)

    def _path(self, name: str) -> Path:
        return self._folder / f"rows.{name}"

    def add(self, docs: Numbers, counts: Numbers, checksums: NDArray[np.uint32]) -> None:
        """Append documents.

        docs: (n,), the documents' numbers, which ascend over all calls. counts: (n, arrays), the
        number of rows in each array. checksums: (n,), the salted checksums of the rows.
        """
        self._docs.append(docs.astype(np.uint32))
        self._counts.append(counts)
        self._checksums.append(checksums)

    def add_rows(self, numbers: Numbers, rows: Sequence[Rows]) -> None:
        """Append documents with their rows, which `checked_rows` has checked.

        numbers: (n,), ascending over all calls. rows: of each of these documents.
        """
        counts = np.array([[len(values) for values in r.values()] for r in rows])
        checksums = np.array([rows_checksum(r) for r in rows], np.uint32)
        self.add(numbers, counts, checksums ^ document_salt(numbers))
        for name in self._arrays:
            self.write(name, (r[name] for r in rows))

    def write(self, name: str, chunks: Iterable[NDArray[Any]]) -> None:
        """Append the rows of the added documents to the array `name`, in chunks of any length."""
        with self._path(name).open("ab") as out:
            for chunk in chunks:
                out.write(np.ascontiguousarray(chunk).data)

    def close(self) -> RowFolderEntry:
        """Write numbers, starts and checksums, flush all files, and return the folder's entry."""
        docs, starts = np.concatenate(self._docs), np.cumsum(np.concatenate(self._counts), axis=0)
        save_array(self._folder / "docs.npy", docs)
        save_array(self._folder / "starts.npy", smallest_uint(starts))
        save_array(self._folder / "checks.npy", np.concatenate(self._checksums))
        for path in (*self._folder.iterdir(), self._folder, self._folder.parent):
            flush(path)
        rows = tuple(starts[-1].tolist())
        return RowFolderEntry(self._folder.name, len(docs), rows, folder_checksum(self._folder))


@contextmanager
def new_rows(folder: Path, schema: AttachmentSchema) -> Iterator[RowWriter]:
    """Create `folder` and yield a writer for it; remove it if the block raises."""
    writer = RowWriter(folder, schema)
    try:
        yield writer
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def folder_checksum(folder: Path) -> str:
    """Return the checksum of the files in a folder of rows, in order of name."""
    return fingerprint(*sorted(folder.iterdir()))


def compute_rows(
    folder: Path,
    part: Part,
    numbers: Numbers,
    read_fields: tuple[str, ...],
    job: AttachmentJob,
    advance: Callable[[int], object],
) -> RowFolderEntry:
    """Compute the rows of some documents of `part` and write them to `folder`; return its entry.

    One batch of documents and its rows are in memory at a time. After COMMIT_SECONDS the remaining
    documents are left out. The folder is removed on failure.

    numbers: the documents' numbers, ascending. read_fields: see `Document`. advance: called with
    the number of documents in each batch. Raises InputError if the computed rows do not have the
    form in the schema.
    """
    end = time.monotonic() + COMMIT_SECONDS
    with new_rows(folder, job.schema) as writer:
        for batch, documents in batches(
            part, numbers, read_fields, BATCH_DOCUMENTS, BATCH_CHARACTERS
        ):
            writer.add_rows(batch, checked_rows(job, documents, job.compute(documents)))
            advance(len(documents))
            if time.monotonic() > end:
                break
        return writer.close()


def batches(
    part: Part,
    numbers: Numbers,
    read_fields: tuple[str, ...],
    max_documents: int,
    max_characters: int,
) -> Iterator[tuple[Numbers, list[Document]]]:
    """Yield the documents `numbers` of `part`, with their numbers, in batches.

    A batch ends after `max_documents` documents, or with the document that completes
    `max_characters` characters. read_fields: see `Document`.
    """
    first, documents, characters = 0, list[Document](), 0
    for number, fields in part.stored_fields.iterate(numbers.tolist()):
        documents.append(Document(part.doc_ids[number], fields, read_fields))
        characters += sum(map(len, fields.values()))
        if len(documents) >= max_documents or characters >= max_characters:
            yield numbers[first : first + len(documents)], documents
            first, documents, characters = first + len(documents), [], 0
    if documents:
        yield numbers[first:], documents


def checked_rows(
    job: AttachmentJob,
    documents: Sequence[Document],
    computed: Iterable[NewRows],
) -> list[Rows]:
    """Return the computed rows of `documents`, with arrays in the order of the schema.

    Raises InputError if they do not have the form in the schema.
    """
    results = list(computed)
    where = f"attachment {job.name}"
    if len(results) != len(documents):
        wanted = f"rows for {len(documents)} documents"
        raise InputError(
            "wrong number of results", where=where, wanted=wanted, found=f"{len(results)}"
        )
    arrays = job.schema.arrays
    for document, rows in zip(documents, results, strict=True):
        at = f"{where}: document {document.doc_id}"
        if rows.keys() != arrays.keys():
            raise InputError("wrong arrays", where=at, wanted=str([*arrays]), found=str([*rows]))
        for name, form in arrays.items():
            if not form.fits(rows[name]):
                actual = f"{rows[name].dtype} {rows[name].shape}"
                raise InputError(
                    f"rows of {name} have the wrong form", where=at, wanted=str(form), found=actual
                )
    return [{name: np.ascontiguousarray(rows[name]) for name in arrays} for rows in results]


def copy_rows(
    target: Path, schema: AttachmentSchema, sources: Sequence[tuple[RowFolder, Numbers]]
) -> RowFolderEntry | None:
    """Copy the rows of several folders to the new folder `target`; return its entry.

    Returns None, without creating a folder, if no document remains. Rows and their checksums are
    copied without verification.

    sources: folders, each with the new numbers of all documents in it; −1 leaves a document out.
    Raises ArtifactError if two documents get the same number.
    """
    owner, position, number = _live_documents(sources)  # (n,) each
    if not len(number):
        return None
    if (np.diff(number) == 0).any():
        where = str(sources[0][0].path.parent)
        raise ArtifactError("a document has rows in two folders", where=where, remedy=REMEDY)
    begins, ends, checksums = _bounds([folder for folder, _ in sources], owner, position)
    # Documents that follow each other in their source are copied as one run.
    cuts = np.flatnonzero((np.diff(owner) != 0) | (np.diff(position) != 1)) + 1
    first, last = np.append(0, cuts), np.append(cuts, len(number)) - 1
    with new_rows(target, schema) as writer:
        writer.add(number, ends - begins, checksums ^ document_salt(number))
        for column, name in enumerate(schema.arrays):
            values = [folder.values[name] for folder, _ in sources]
            edges = (owner[first], begins[first, column], ends[last, column])
            runs = zip(*(edge.tolist() for edge in edges), strict=True)
            writer.write(name, (values[source][a:b] for source, a, b in runs))
        return writer.close()


def _live_documents(
    sources: Sequence[tuple[RowFolder, Numbers]],
) -> tuple[Numbers, Numbers, Numbers]:
    """Return for each document that is not left out: its source, position there, and new number.

    Each array is int64 (n,); the new numbers ascend.
    """
    owner = np.repeat(np.arange(len(sources)), [len(folder) for folder, _ in sources])
    nothing = np.zeros(0, np.int64)
    position = np.concatenate([nothing, *(np.arange(len(folder)) for folder, _ in sources)])
    number = np.concatenate([nothing, *(numbers for _, numbers in sources)])
    order = np.argsort(number, kind="stable")[np.count_nonzero(number < 0) :]
    return owner[order], position[order], number[order]


def _bounds(
    sources: Sequence[RowFolder], owner: Numbers, position: Numbers
) -> tuple[Numbers, Numbers, NDArray[np.uint32]]:
    """Return where each document's rows begin and end, and its unsalted checksum.

    The shapes are (n, arrays), (n, arrays) and (n,).
    """
    begins = np.empty((len(owner), len(sources[0].values)), np.int64)
    ends, checksums = np.empty_like(begins), np.empty(len(owner), np.uint32)
    for i, folder in enumerate(sources):
        here = owner == i
        at = position[here]
        begins[here], ends[here] = folder.starts[at], folder.starts[at + 1]
        checksums[here] = folder.checksums[at] ^ document_salt(folder.docs[at])
    return begins, ends, checksums
