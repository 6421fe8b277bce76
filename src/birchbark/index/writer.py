"""How does an index on disk change, so that every reader sees all of a change or none?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from birchbark.artifact import TEMPORARY, fingerprint, flush, lock
from birchbark.errors import ArtifactError, InputError
from birchbark.index.arrays import save_array
from birchbark.index.attach import attached, carried, detached
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.attachment_writer import Attaching, Compute
from birchbark.index.layout import Manifest, PartEntry
from birchbark.index.merge import merge_parts, new_numbers, worth_merging
from birchbark.index.part import PartBuilder, field_totals
from birchbark.index.part_reader import Part
from birchbark.index.reader import Index
from birchbark.index.vocabulary import Vocabulary
from birchbark.records import Document

PART_TOKENS = 40_000_000
MOST_KEPT = 1 << 20  # analyzed tokens that are remembered from one part to the next
KEEP_EVERY = 10_000
LOCK = "write.lock"


class IndexWriter:
    """Adds, updates and deletes documents, and merges parts. One writer at a time.

    Nothing is seen by readers, or survives a crash, before `commit`; everything committed does.
    As a context manager it commits at the end of the block, or gives up the changes since the last
    commit if the block raises. A lock left by a dead process does no harm.
    """

    def __init__(self, directory: Path | str, part_tokens: int = PART_TOKENS) -> None:
        """Open the index in `directory` for writing.

        part_tokens: a part is closed when it holds this many tokens. Raises InputError if there is
        no index, and ArtifactError if it is damaged or another process is writing to it.
        """
        self.directory = Path(directory)
        self._part_tokens = part_tokens
        Manifest.read(self.directory)
        self._lock = lock(self.directory / LOCK, "index")
        try:
            manifest = Manifest.read(self.directory)
            self._analyzers = list(manifest.field_analyzers(self.directory).values())
            self._vocabularies = [Vocabulary(chosen) for chosen in self._analyzers]
            self._start(manifest)
            self._clean()
        except BaseException:
            self._lock.close()
            raise

    def _start(self, manifest: Manifest) -> None:
        """Begin with nothing changed since `manifest`."""
        self._manifest = manifest
        self._index = Index(self.directory)
        self._deleted: dict[str, set[int]] = {}  # part name → numbers deleted since the commit
        self._closed: list[PartEntry] = []  # written since the commit
        self._new: dict[str, tuple[str, int]] = {}  # doc_id → part and number, since the commit
        self._builder: PartBuilder | None = None
        self._serial = 0

    def __contains__(self, doc_id: str) -> bool:
        """Whether the document is there, changes not yet committed included."""
        return self._locate(doc_id) is not None

    def __len__(self) -> int:
        """The number of documents, changes not yet committed included."""
        old = {part.name for part in self._index.parts}
        gone = sum(len(numbers) for name, numbers in self._deleted.items() if name in old)
        return len(self._index) - gone + len(self._new)

    def add(self, document: Document) -> None:
        """Add `document`; one with the same id is replaced.

        Raises InputError, and changes nothing, if it has no id or is not valid Unicode, and
        ArtifactError if the writer is closed.
        """
        if document.fault:
            raise InputError(document.fault, where=f"document {document.doc_id!r}")
        self.delete(document.doc_id)
        if self._builder and self._builder.holds(self._part_tokens):
            self._close_part()
        if not self._builder:
            path = self.directory / self._next_name()
            if sum(map(len, self._vocabularies)) > MOST_KEPT:
                self._vocabularies = [Vocabulary(chosen) for chosen in self._analyzers]
            self._builder = PartBuilder(path, self._manifest, self._vocabularies)
        self._new[document.doc_id] = (self._builder.name, len(self._builder))
        self._builder.add(document)

    def delete(self, doc_id: str) -> bool:
        """Delete the document; False if it is not there. ArtifactError if the writer is closed."""
        self._check_open()
        place = self._locate(doc_id)
        if place is None:
            return False
        part, number = place
        self._deleted.setdefault(part, set()).add(number)
        self._new.pop(doc_id, None)
        return True

    def commit(self) -> None:
        """Make all changes durable and visible at once; parts are merged where it pays.

        Raises ArtifactError if the writer is closed, or the index was replaced meanwhile.
        """
        self._publish_changes()
        while group := worth_merging(self._manifest.parts):
            self._merge(group)

    def merge(self) -> None:
        """Commit, then rewrite the index as a single part without deleted documents."""
        self.commit()
        parts = self._manifest.parts
        if len(parts) > 1 or any(part.deleted for part in parts):
            self._merge(parts)

    @property
    def attachments(self) -> Mapping[str, AttachmentSchema]:
        """Name → schema of each attachment, as of the last commit."""
        return self._manifest.attachments

    def incomplete(self) -> dict[str, int]:
        """Attachment → how many documents lack rows, where any do; as of the last commit."""
        return self._index.incomplete()

    def attach(
        self,
        name: str,
        schema: AttachmentSchema,
        compute: Compute,
        advance: Callable[[int], object] = lambda documents: None,
        *,
        keep_every: int = KEEP_EVERY,
    ) -> None:
        """Commit; then compute what the attachment `name` lacks, and commit that as it comes.

        What is there under another schema is dropped by the first commit of the new. What was
        committed stays if computing fails or is killed; attaching again goes on from there.
        compute: see `Attaching`. advance: called with numbers of documents. keep_every: after how
        many documents of a part there is a commit. Raises InputError if the schema or what was
        computed cannot be kept, and ArtifactError if what is there is damaged.
        """
        attaching = Attaching(name, schema, compute).checked()
        self._publish_changes()
        steps = attached(self._index, self._manifest, attaching, max(1, keep_every), advance)
        for manifest in steps:
            self._check_place()
            self._swap(manifest)

    def detach(self, name: str) -> None:
        """Commit, and drop the attachment; InputError if there is none of this name."""
        self._publish_changes()  # merging could meet the damage that it is to be dropped for
        left = detached(self._manifest, name)
        self._swap(replace(left, generation=left.generation + 1))

    def close(self) -> None:
        """Give up what was not committed, and let the next writer in."""
        self._lock.close()

    def _check_open(self) -> None:
        if self._lock.closed:
            where = str(self.directory)
            raise ArtifactError("the writer is closed", where=where, remedy="open another")

    def _check_place(self) -> None:
        """That the index whose lock this is still stands in its place."""
        try:
            there = os.path.samestat(os.fstat(self._lock.fileno()), (self.directory / LOCK).stat())
        except FileNotFoundError:
            there = False
        if not there:
            raise ArtifactError(
                "the index was replaced or removed while it was written to",
                where=str(self.directory),
                remedy="open a new writer, and make the changes again",
            )

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

    def _locate(self, doc_id: str) -> tuple[str, int] | None:
        """Name of the part that holds the document, and its number there."""
        if doc_id in self._new:
            return self._new[doc_id]
        found = self._index.find(doc_id)
        if found is None:
            return None
        name, number = self._index.parts[found[0]].name, found[1]
        return None if number in self._deleted.get(name, ()) else (name, number)

    def _next_name(self) -> str:
        return f"part-{self._manifest.generation + 1:06}-{self._serial:03}"

    def _close_part(self) -> None:
        if self._builder:
            self._closed.append(self._builder.close())
            self._builder = None
            self._serial += 1

    def _with_deletions(self, entry: PartEntry) -> PartEntry:
        """`entry` with the documents deleted since the commit taken off."""
        numbers = self._deleted.get(entry.name)
        if not numbers:
            return entry
        folder = self.directory / entry.name
        if entry.deleted:
            numbers = numbers.union(np.load(folder / entry.deleted).tolist())
        path = folder / f"deleted-{self._manifest.generation + 1:06}.npy"
        gone = np.array(sorted(numbers), np.uint32)
        save_array(path, gone)
        flush(path)
        flush(folder)
        lengths = np.load(folder / "lengths.npy")
        lengths[:, gone] = 0
        totals = tuple(map(field_totals, lengths))
        return replace(entry, fields=totals, deleted=path.name, deleted_checksum=fingerprint(path))

    def _publish_changes(self) -> None:
        """What `commit` does, without merging."""
        self._check_open()
        self._check_place()
        self._close_part()
        if self._closed or self._deleted:
            entries = [*self._manifest.parts, *self._closed]
            self._publish([self._with_deletions(entry) for entry in entries])

    def _publish(self, entries: Iterable[PartEntry]) -> None:
        """Swap the manifest; parts without a document left are dropped."""
        kept = tuple(entry for entry in entries if self._live(entry))
        generation = self._manifest.generation + 1
        self._swap(replace(self._manifest, parts=kept, generation=generation))

    def _swap(self, manifest: Manifest) -> None:
        """Put `manifest` in the place of the present one, and remove what it does not name."""
        flush(self.directory)
        manifest.write(self.directory)
        self._start(manifest)
        self._clean()

    def _live(self, entry: PartEntry) -> int:
        gone = np.load(self.directory / entry.name / entry.deleted) if entry.deleted else ()
        return entry.documents - len(gone)

    def _merge(self, group: Iterable[PartEntry]) -> None:
        """Put one part in the place of those in `group`, which are neighbours."""
        names = {entry.name for entry in group}
        positions = [i for i, part in enumerate(self._index.parts) if part.name in names]
        parts = [self._index.parts[position] for position in positions]
        merged = self._merged(positions, parts)
        entries: list[PartEntry] = []
        for entry in self._manifest.parts:
            if entry.name not in names:
                entries.append(entry)
            elif merged not in entries:
                entries.append(merged)
        self._publish(entries)

    def _merged(self, positions: Sequence[int], parts: Sequence[Part]) -> PartEntry:
        """One part with the living documents of `parts`, and what is attached to them."""
        target = self.directory / self._next_name()
        try:
            merged = merge_parts(parts, target, self._manifest.forward)
            numbers = new_numbers(parts)
            rows = carried(self._index, self._manifest, positions, numbers, target)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        return replace(merged, attached=rows)

    def _clean(self) -> None:
        """Remove files that the manifest does not name: left by a crash, or replaced."""
        parts = {entry.name: entry for entry in self._manifest.parts}
        for path in self.directory.iterdir():
            entry = parts.get(path.name)
            if entry:
                for old in path.glob("deleted-*"):
                    if old.name != entry.deleted:
                        old.unlink()
                held = {rows.name for entries in entry.attached.values() for rows in entries}
                for old in path.glob("attached-*"):
                    if old.name not in held:
                        shutil.rmtree(old)
            elif path.name.startswith("part-"):
                shutil.rmtree(path)
            elif path.name.startswith(TEMPORARY):
                with suppress(FileNotFoundError):
                    path.unlink()
