"""How are documents of a divided index changed? Each in the shard that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from birchbark.arguments import path_of
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.attachment_slices import Slice
from birchbark.index.attachment_writer import ComputeRows, NewRows
from birchbark.index.origin import NewOrigin
from birchbark.index.shards import end_commit, shard_folders, shard_number, write_commit
from birchbark.index.writer import (
    COMMIT_EVERY,
    PART_TOKENS,
    CommittingWriter,
    IndexWriter,
    as_document,
)
from birchbark.record_values import as_id
from birchbark.records import Document


class ShardedWriter(CommittingWriter):
    """An `IndexWriter` for an index that is divided into shards; see its methods.

    Documents are committed to all shards at once; parts are merged, and rows attached, shard by
    shard.
    """

    def __init__(self, directory: Path) -> None:
        """Open all shards of the index in `directory` for writing."""
        self.directory, folders = directory.absolute(), shard_folders(directory)
        with ExitStack() as stack:
            self._writers = [
                stack.enter_context(closing(IndexWriter(folder, PART_TOKENS // len(folders))))
                for folder in folders
            ]
            end_commit(directory)  # which the writers have carried out
            self._open = stack.pop_all()

    def _of(self, doc_id: str) -> IndexWriter:
        return self._writers[shard_number(as_id(doc_id, "doc_id"), len(self._writers))]

    def __contains__(self, doc_id: str) -> bool:
        """Whether the document exists, with uncommitted changes."""
        return doc_id in self._of(doc_id)

    def __len__(self) -> int:
        """The number of documents, with uncommitted changes."""
        return sum(map(len, self._writers))

    def add(self, document: Document | Mapping[str, Any]) -> None:
        """Add a document, or replace the document with the same id."""
        document = as_document(document)
        self._of(document.doc_id).add(document)

    def delete(self, doc_id: str) -> bool:
        """Delete a document; return False if it does not exist."""
        return self._of(doc_id).delete(doc_id)

    def set_origin(self, origin: NewOrigin) -> None:
        """Commit together with the other changes where the documents come from."""
        self._writers[0].set_origin(origin)

    def commit(self) -> None:
        """Make all changes durable and visible at once; then merge parts if there are too many."""
        self._commit_changes()
        for writer in self._writers:
            writer.merge_if_many()

    def _commit_changes(self) -> None:
        """Commit without merging; see `shards.py`."""
        prepared = [(w, manifest) for w in self._writers if (manifest := w.prepare())]
        if len(prepared) > 1:
            manifests = {writer.directory.name: manifest for writer, manifest in prepared}
            write_commit(self.directory, manifests)
        for writer, manifest in prepared:
            writer.publish(manifest)
        end_commit(self.directory)

    def merge(self) -> None:
        """Commit, then rewrite each shard as a single part without deleted documents."""
        self._commit_changes()
        for writer in self._writers:
            writer.merge()

    @property
    def attachments(self) -> Mapping[str, AttachmentSchema]:
        """The name and schema of each attachment, at the last commit."""
        return {name: x for writer in self._writers for name, x in writer.attachments.items()}

    def missing_rows(self) -> dict[str, int]:
        """Return `Index.missing_rows` at the last commit."""
        missing: dict[str, int] = {}
        for writer in self._writers:
            rows = writer.missing_rows()
            without = {name: len(writer) for name in self.attachments.keys() - writer.attachments}
            for name, count in {**rows, **without}.items():
                missing[name] = missing.get(name, 0) + count
        return {name: count for name, count in missing.items() if count}

    def attach(
        self,
        name: str,
        schema: AttachmentSchema,
        compute: ComputeRows,
        advance: Callable[[int], object] = lambda documents: None,
        *,
        commit_every: int = COMMIT_EVERY,
    ) -> None:
        """Commit; then compute and commit the missing rows of an attachment, shard by shard.

        Rows of another schema are dropped from all shards first, so that shards never differ.
        """
        schema = schema.checked(name)
        self._commit_changes()
        for writer in self._writers:
            if writer.attachments.get(name, schema) != schema:
                writer.detach(name)
        for writer in self._writers:
            writer.attach(name, schema, compute, advance, commit_every=commit_every)

    def attach_slice(
        self, name: str, schema: AttachmentSchema, computed: Slice, rows: Sequence[NewRows]
    ) -> None:
        """Commit; then commit rows that have been computed for a slice of the documents."""
        schema = schema.checked(name)
        schema.check_same(name, self.attachments, self.directory)
        self._commit_changes()
        part, checksum = computed.part
        folder, _, own_name = part.partition("/")
        for writer in self._writers:
            if writer.directory.name == folder:
                own = replace(computed, part=(own_name, checksum))
                writer.attach_slice(name, schema, own, rows)

    def detach(self, name: str) -> None:
        """Commit, and remove an attachment from all shards; InputError if there is none."""
        self._commit_changes()
        having = [writer for writer in self._writers if name in writer.attachments]
        for writer in having or self._writers:
            writer.detach(name)

    def renew(self) -> None:
        """Commit, and have readers open the index again; the manifest of one shard tells them."""
        self._commit_changes()
        self._writers[0].renew()

    def close(self) -> None:
        """Drop uncommitted changes and release the locks."""
        self._open.close()


Writer = IndexWriter | ShardedWriter


def open_writer(directory: PathLike[str] | str) -> Writer:
    """Open the index in `directory` for writing, whether or not it is divided into shards.

    For the arguments and errors see `IndexWriter`.
    """
    directory = path_of(directory, "the directory of the index")
    if shard_folders(directory):
        return ShardedWriter(directory)
    return IndexWriter(directory)
