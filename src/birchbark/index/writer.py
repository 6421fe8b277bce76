"""How is an index on disk changed, so that readers see each change completely or not at all?"""

from __future__ import annotations

import os
import shutil
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from birchbark.arguments import path_of
from birchbark.artifact import TEMPORARY, discard, fingerprint, lock
from birchbark.errors import ArtifactError, InputError, OutdatedError, reporting_damage
from birchbark.index.arrays import map_array, save_array
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.attachment_slices import Slice, store_slice
from birchbark.index.attachment_updates import (
    attach_rows,
    merge_attachments,
    without_attachment,
)
from birchbark.index.attachment_writer import AttachmentJob, ComputeRows, NewRows
from birchbark.index.index import Index
from birchbark.index.layout import ORIGIN_FILES, Manifest, PartEntry
from birchbark.index.merge import merge_parts, merged_numbers, parts_to_merge
from birchbark.index.origin import NewOrigin
from birchbark.index.part import REMEDY, Part
from birchbark.index.part_builder import PartBuilder, field_totals
from birchbark.index.shards import carry_out_commit, own_shard, shard_number
from birchbark.index.vocabulary import Vocabulary
from birchbark.record_values import as_id
from birchbark.records import Document
from birchbark.systems import flush

PART_TOKENS = 40_000_000
MAX_CACHED_SPANS = 1 << 20  # analyzed spans that are cached from one part to the next
COMMIT_EVERY = 10_000  # documents whose attached rows are committed together
LOCK = "write.lock"
LOCK_SECONDS = 2.0  # to wait for another writer, which may store a slice of rows (attach_slice)


class CommittingWriter(ABC):
    """A context manager that commits at the end of the block, or drops what the block changed."""

    @abstractmethod
    def commit(self) -> None:
        """Make all changes durable and visible."""

    @abstractmethod
    def close(self) -> None:
        """Drop uncommitted changes and release the lock."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.commit()
        finally:
            self.close()


class IndexWriter(CommittingWriter):
    """Adds, updates and deletes documents of an index, and merges its parts.

    Changes become visible and durable with `commit`. As a context manager, the writer commits at
    the end of the block, or drops the changes since the last commit if the block raises. Only one
    writer can be open at a time: another one waits for two seconds. The lock of a process that has
    died is ignored.

    Args:
        directory: The directory of the index.
        part_tokens: Start another part of the index when the current one has this many tokens.
            Default 40,000,000.

    Raises:
        InputError: If there is no index in `directory`.
        ArtifactError: If the index is damaged, or another process is writing to it.
    """

    def __init__(self, directory: Path | str, part_tokens: int = PART_TOKENS) -> None:
        """Open the index in `directory` for writing."""
        directory = path_of(directory, "the directory of the index")
        Manifest.read(directory)
        self.directory = directory.absolute()  # the process may change its working directory
        self._part_tokens = part_tokens
        self._lock = lock(self.directory / LOCK, "index", LOCK_SECONDS)
        try:
            self._check_in_place()
            manifest = carry_out_commit(self.directory)
            self._analyzers = list(manifest.field_analyzers(self.directory).values())
            self._vocabularies = [Vocabulary(analyzer) for analyzer in self._analyzers]
            self._shard = own_shard(self.directory)
            self._start(manifest)
            len(self._index)  # opened now, for its errors
            self._remove_unused_files()
        except BaseException:
            self._lock.close()
            raise

    def _start(self, manifest: Manifest) -> None:
        """Start from `manifest`, without uncommitted changes."""
        self._manifest = manifest
        self._opened: Index | None = None
        # Changes since the last commit:
        self._deleted: dict[str, set[int]] = {}  # part name → numbers of deleted documents
        self._closed: list[PartEntry] = []  # complete parts
        self._new: dict[str, tuple[str, int]] = {}  # doc_id → part name and number
        self._builder: PartBuilder | None = None  # the part that documents are added to
        self._serial = 0  # the serial number of the next part
        self._origin: bytes | None = None

    @property
    def _index(self) -> Index:
        """The index at the last commit. A commit is complete whether or not this can be opened."""
        if self._opened is None:
            self._opened = Index(self.directory)
        return self._opened

    def __contains__(self, doc_id: str) -> bool:
        """Whether the document exists, with uncommitted changes."""
        return self._locate(as_id(doc_id, "doc_id")) is not None

    def __len__(self) -> int:
        """The number of documents, with uncommitted changes."""
        committed = {part.name for part in self._index.parts}
        deleted = sum(len(ns) for name, ns in self._deleted.items() if name in committed)
        return len(self._index) - deleted + len(self._new)

    def add(self, document: Document | Mapping[str, Any]) -> None:
        """Add a document, or replace the document with the same id.

        Args:
            document: A Document, or a record (see `Document.from_dict`).

        Raises:
            InputError: If the document has no id, is not valid Unicode, has invalid weights of
                terms, or a list as a keyword; nothing is changed.
            ArtifactError: If the writer is closed.
        """
        document = as_document(document)
        where = f"document {document.doc_id!r}"
        self._manifest.check_keywords(document.fields, where)
        impacts = self._manifest.impacts_of(document.fields, where)
        if self._shard and shard_number(document.doc_id, self._shard[1]) != self._shard[0]:
            raise InputError(
                f"document {document.doc_id!r} belongs to another shard",
                where=str(self.directory),
                remedy="change the whole index, not one of its shards",
            )
        self.delete(document.doc_id)
        if self._builder and self._builder.reaches(self._part_tokens):
            self._close_part()
        if not self._builder:
            path = self.directory / self._next_name()
            if sum(map(len, self._vocabularies)) > MAX_CACHED_SPANS:
                self._vocabularies = [Vocabulary(analyzer) for analyzer in self._analyzers]
            self._builder = PartBuilder(path, self._manifest, self._vocabularies)
        self._new[document.doc_id] = (self._builder.name, len(self._builder))
        self._builder.add(document, impacts)

    def delete(self, doc_id: str) -> bool:
        """Delete a document; return False if it does not exist.

        Args:
            doc_id: The id of the document.

        Raises:
            ArtifactError: If the writer is closed.
        """
        self._check_open()
        doc_id = as_id(doc_id, "doc_id")
        location = self._locate(doc_id)
        if location is None:
            return False
        part, number = location
        self._deleted.setdefault(part, set()).add(number)
        self._new.pop(doc_id, None)
        return True

    def set_origin(self, origin: NewOrigin) -> None:
        """Commit together with the other changes where the documents come from.

        Args:
            origin: What the index is to know of that.

        Raises:
            OutdatedError: If it is no longer what the index knew when the changes were made.
            ArtifactError: If the writer is closed.
        """
        self._check_open()
        if origin.replaces != self._manifest.origin_checksum:
            raise OutdatedError(
                "another process has brought the index up to date in the meantime",
                where=str(self.directory),
                remedy="begin again",
            )
        self._origin = origin.text

    def commit(self) -> None:
        """Make all changes durable and visible at once; then merge parts if there are too many.

        A merge that fails is told by a warning, since the changes are on disk.

        Raises:
            ArtifactError: If the writer is closed, or another index has replaced this one.
        """
        self._commit_changes()
        self.merge_if_many()

    def merge_if_many(self) -> None:
        """Merge committed parts if there are too many of one order of magnitude.

        A full disk or damage to a part is told by a warning: nothing of a commit is lost by it.
        """
        try:
            while group := parts_to_merge(self._manifest.parts):
                self._merge(group)
        except (OSError, ArtifactError) as error:
            warnings.warn(
                f"{self.directory}: all changes are committed, but parts were not merged "
                f"(the next commit tries again): {error}",
                stacklevel=2,
            )

    def merge(self) -> None:
        """Commit, then rewrite the index as a single part without deleted documents.

        Raises:
            ArtifactError: If a part is damaged, or for the reasons of `commit`.
            OSError: If the disk is full. The changes are committed in both cases.
        """
        self._commit_changes()
        parts = self._manifest.parts
        if len(parts) > 1 or any(part.deleted for part in parts):
            self._merge(parts)

    @property
    def attachments(self) -> Mapping[str, AttachmentSchema]:
        """The name and schema of each attachment, at the last commit."""
        return self._manifest.attachments

    def missing_rows(self) -> dict[str, int]:
        """Return `Index.missing_rows` at the last commit."""
        return self._index.missing_rows()

    def attach(
        self,
        name: str,
        schema: AttachmentSchema,
        compute: ComputeRows,
        advance: Callable[[int], object] = lambda documents: None,
        *,
        commit_every: int = COMMIT_EVERY,
    ) -> None:
        """Commit; then compute and commit the missing rows of an attachment.

        The first commit drops rows computed under another schema. If a computation fails or the
        process is killed, committed rows remain, and another call continues from there.

        Args:
            name: The name of the attachment.
            schema: The arrays of the attachment, and how they are computed.
            compute: The function that maps documents to their rows (see `AttachmentJob`).
            advance: Called with the number of documents in each batch.
            commit_every: Commit after this many documents of a part. Default 10,000. A commit
                follows at least every 30 seconds, too.

        Raises:
            InputError: If the schema or the computed rows are invalid.
            ArtifactError: If existing rows are damaged, or the writer is closed.
        """
        job = AttachmentJob(name, schema, compute).checked()
        self._commit_changes()
        manifest, every = self._manifest, max(1, commit_every)
        for step in attach_rows(self._index, manifest, job, every, advance):
            self.publish(step)

    def attach_slice(
        self, name: str, schema: AttachmentSchema, computed: Slice, rows: Sequence[NewRows]
    ) -> None:
        """Commit; then commit rows that have been computed for a slice of the documents.

        Documents that were deleted, have rows by now, or belong to a merged part are left out.

        Args:
            name: The name of the attachment, which is added if the index does not have it.
            schema: The arrays of the attachment, and how they are computed.
            computed: The documents, from `next_slice`.
            rows: The rows of each of these documents, in order.

        Raises:
            InputError: If the attachment has another schema, or the rows have the wrong form.
            ArtifactError: If existing rows are damaged, or the writer is closed.
        """
        job = AttachmentJob(name, schema, lambda documents: rows).checked()
        self._commit_changes()
        for step in store_slice(self._index, self._manifest, job, computed, rows):
            self.publish(step)

    def detach(self, name: str) -> None:
        """Commit, and remove an attachment.

        Args:
            name: The name of the attachment; InputError if there is none.
        """
        self._commit_changes()  # without merging, which fails if the attachment is damaged
        self.publish(without_attachment(self._manifest, name))

    def renew(self) -> None:
        """Commit, and have readers open the index again, since graphs were built beside it."""
        self._commit_changes()
        self.publish(self._with_parts(self._manifest.parts))

    def close(self) -> None:
        """Drop uncommitted changes and release the lock."""
        self._lock.close()

    def _check_open(self) -> None:
        if self._lock.closed:
            where = str(self.directory)
            raise ArtifactError("the writer is closed", where=where, remedy="open a new writer")

    def _check_in_place(self) -> None:
        """Raise ArtifactError if the index in `directory` is no longer the one that is locked."""
        try:
            same = os.path.samestat(os.fstat(self._lock.fileno()), (self.directory / LOCK).stat())
        except FileNotFoundError:
            same = False
        if not same:
            raise ArtifactError(
                "the index was replaced or removed while the writer was open",
                where=str(self.directory),
                remedy="open a new writer and repeat the changes",
            )

    def _locate(self, doc_id: str) -> tuple[str, int] | None:
        """Return the name of the document's part and its number there, or None."""
        if doc_id in self._new:
            return self._new[doc_id]
        location = self._index.find(doc_id)
        if location is None:
            return None
        name, number = self._index.parts[location[0]].name, location[1]
        return None if number in self._deleted.get(name, ()) else (name, number)

    def _next_name(self) -> str:
        return f"part-{self._manifest.generation + 1:06}-{self._serial:03}"

    def _close_part(self) -> None:
        if self._builder:
            self._closed.append(self._builder.close())
            self._builder = None
            self._serial += 1

    def _with_deletions(self, entry: PartEntry) -> PartEntry:
        """Write the part's deletions since the last commit, and return its entry with them."""
        numbers = self._deleted.get(entry.name)
        if not numbers:
            return entry
        folder = self.directory / entry.name
        if entry.deleted:
            numbers = numbers.union(map_array(folder / entry.deleted).tolist())
        path = folder / f"deleted-{self._manifest.generation + 1:06}.npy"
        deleted = np.array(sorted(numbers), np.uint32)
        save_array(path, deleted)
        flush(path)
        flush(folder)
        lengths = map_array(folder / "lengths.npy").copy()
        lengths[:, deleted] = 0
        totals = tuple(map(field_totals, lengths))
        return replace(entry, fields=totals, deleted=path.name, deleted_checksum=fingerprint(path))

    def _commit_changes(self) -> None:
        """Commit without merging."""
        if manifest := self.prepare():
            self.publish(manifest)

    def prepare(self) -> Manifest | None:
        """Make all changes durable; return the manifest that makes them visible, None without any.

        The manifest must be published before the next change.
        """
        self._check_open()
        self._check_in_place()
        self._close_part()
        if not self._closed and not self._deleted and self._origin is None:
            return None
        entries = [*self._manifest.parts, *self._closed]
        manifest = self._with_parts([self._with_deletions(entry) for entry in entries])
        if self._origin is not None:
            path = self.directory / f"{ORIGIN_FILES}{manifest.generation:06}.json"
            path.write_bytes(self._origin)
            flush(path)
            checksum = fingerprint(self._origin)
            manifest = replace(manifest, origin=path.name, origin_checksum=checksum)
        flush(self.directory)
        return manifest

    def _with_parts(self, entries: Iterable[PartEntry]) -> Manifest:
        """Return the next manifest, with these parts, except those without live documents."""
        parts = tuple(entry for entry in entries if self._count_live(entry))
        return replace(self._manifest, parts=parts, generation=self._manifest.generation + 1)

    def publish(self, manifest: Manifest) -> None:
        """Replace the current manifest by `manifest`, and delete files that it does not name.

        Raises ArtifactError if another index has replaced this one.
        """
        self._check_in_place()
        flush(self.directory)
        manifest.write(self.directory)
        self._start(manifest)
        self._remove_unused_files()

    def _count_live(self, entry: PartEntry) -> int:
        deleted = map_array(self.directory / entry.name / entry.deleted) if entry.deleted else ()
        return entry.documents - len(deleted)

    def _merge(self, group: Iterable[PartEntry]) -> None:
        """Replace the adjacent parts in `group` by one."""
        names = {entry.name for entry in group}
        positions = [i for i, part in enumerate(self._index.parts) if part.name in names]
        parts = [self._index.parts[position] for position in positions]
        merged = self._write_merged(positions, parts)
        entries: list[PartEntry] = []
        for entry in self._manifest.parts:
            if entry.name not in names:
                entries.append(entry)
            elif merged not in entries:
                entries.append(merged)
        self.publish(self._with_parts(entries))

    def _write_merged(self, positions: Sequence[int], parts: Sequence[Part]) -> PartEntry:
        """Write one part with the live documents of `parts` and their attached rows."""
        target = self.directory / self._next_name()
        self._serial += 1  # if this fails, the name may remain taken until the next commit
        try:
            with reporting_damage("index", self.directory, REMEDY):
                merged = merge_parts(parts, target, self._manifest.forward)
            numbers = merged_numbers(parts)
            rows = merge_attachments(self._index, self._manifest, positions, numbers, target)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        return replace(merged, attached=rows)

    def _remove_unused_files(self) -> None:
        """Delete files that the manifest does not name: replaced files or leftovers of a crash."""
        parts = {entry.name: entry for entry in self._manifest.parts}
        for path in self.directory.iterdir():
            if entry := parts.get(path.name):
                folders = {rows.name for entries in entry.attached.values() for rows in entries}
                kept = {entry.deleted, *folders, *(f"graph-{name}" for name in folders)}
                for pattern in ("deleted-*", "attached-*", "graph-attached-*"):
                    for old in path.glob(pattern):
                        if old.name not in kept:
                            discard(old)
            elif path.name.startswith(("part-", TEMPORARY)) or (
                path.name.startswith(ORIGIN_FILES) and path.name != self._manifest.origin
            ):
                discard(path)


def as_document(document: Document | Mapping[str, Any]) -> Document:
    """Return `document`, converted by `Document.from_dict` if it is a record.

    Raises InputError if it cannot be indexed.
    """
    if not isinstance(document, Document):
        document = Document.from_dict(document)
    if document.fault:
        raise InputError(document.fault, where=f"document {document.doc_id!r}")
    return document
