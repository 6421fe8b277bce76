"""How are attachments computed, removed, and copied when parts are merged?

Each update writes rows to new folders and returns a manifest that names them. IndexWriter then
replaces the current manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from birchbark.errors import InputError
from birchbark.index.attachment_folders import (
    folder_name,
    folders_of,
    join,
    join_similar,
    renumbered,
    successor,
    with_attachment,
    with_folder,
    with_folders,
)
from birchbark.index.attachment_reader import Numbers
from birchbark.index.attachment_schema import RowFolderEntry
from birchbark.index.attachment_writer import AttachmentJob, compute_rows, copy_rows
from birchbark.index.index import Index
from birchbark.index.layout import Manifest
from birchbark.index.merge import MERGE_FACTOR


def attach_rows(
    index: Index,
    manifest: Manifest,
    job: AttachmentJob,
    commit_every: int,
    advance: Callable[[int], object],
) -> Iterator[Manifest]:
    """Compute the missing rows of an attachment, and yield manifests that succeed `manifest`.

    The first one drops rows computed under another schema.

    index: the index that `manifest` describes. commit_every: the number of documents after which to
    yield a manifest; each part yields one at its end and after COMMIT_SECONDS too. advance: see
    `compute_rows`.
    """
    name, schema = job.name, job.schema
    attachment = index.attachment(name) if manifest.attachments.get(name) == schema else None
    if not attachment:
        manifest = with_attachment(manifest, name, schema)
        if not manifest.parts:
            yield successor(manifest, manifest.parts)
    for position, part in enumerate(index.parts):
        missing = attachment.missing(position) if attachment else part.live_numbers()
        while len(missing):
            batch = missing[:commit_every]
            folder = part.path / folder_name(name, manifest)
            new = compute_rows(folder, part, batch, manifest.read_fields, job, advance)
            missing = missing[new.documents :]
            yield (manifest := with_folder(manifest, position, name, new))
            for joined in join_similar(part, position, name, manifest):
                yield (manifest := joined)
        folders = folders_of(manifest, position, name)
        if len(folders) >= MERGE_FACTOR:
            yield (manifest := join(part, position, name, manifest, folders))


def without_attachment(manifest: Manifest, name: str) -> Manifest:
    """Return the next manifest, without the attachment `name`; InputError if there is none."""
    if name not in manifest.attachments:
        known = ", ".join(manifest.attachments)
        remedy = f"the index has {known}" if known else "the index has no attachments"
        raise InputError(f"no attachment {name!r} in this index", remedy=remedy)
    remaining = {key: schema for key, schema in manifest.attachments.items() if key != name}
    parts = tuple(with_folders(entry, name, ()) for entry in manifest.parts)
    return successor(replace(manifest, attachments=remaining), parts)


def merge_attachments(
    index: Index,
    manifest: Manifest,
    positions: Sequence[int],
    numbers: Sequence[Numbers],
    target: Path,
) -> dict[str, tuple[RowFolderEntry, ...]]:
    """Copy the attached rows of merged parts to the new part; return attachment → folders.

    Documents that are not attached remain so.

    index: the index that `manifest` describes. positions: the positions of the merged parts.
    numbers: for each of these parts, the documents' new numbers, (documents,), −1 if deleted.
    target: the directory of the new part. Raises ArtifactError if an attachment is damaged.
    """
    entries: dict[str, tuple[RowFolderEntry, ...]] = {}
    for name, schema in index.attachments.items():
        attachment = index.attachment(name)
        of_parts = [attachment.folders[position] if attachment else [] for position in positions]
        sources = [
            source
            for folders, new in zip(of_parts, numbers, strict=True)
            for source in renumbered(folders, new)
        ]
        folder = target / folder_name(name, manifest)
        if entry := copy_rows(folder, schema, sources):
            entries[name] = (entry,)
    return entries
