"""How are attachments computed, removed, and copied when parts are merged?

Each update writes rows to new folders and returns a manifest that names them. IndexWriter then
replaces the current manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from birchbark.errors import InputError
from birchbark.index.attachment_reader import Numbers, RowFolder, reporting_damage
from birchbark.index.attachment_schema import RowFolderEntry
from birchbark.index.attachment_writer import AttachmentJob, compute_rows, copy_rows
from birchbark.index.index import Index
from birchbark.index.layout import Manifest, PartEntry
from birchbark.index.merge import MERGE_FACTOR
from birchbark.index.part import Part


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
    yield a manifest; each part yields one at its end too. advance: see `compute_rows`.
    """
    name, schema = job.name, job.schema
    attachment = index.attachment(name) if manifest.attachments.get(name) == schema else None
    if not attachment:
        empty = [_with_folders(entry, name, ()) for entry in manifest.parts]
        manifest = replace(
            manifest, parts=tuple(empty), attachments={**manifest.attachments, name: schema}
        )
        if not empty:
            yield _successor(manifest, manifest.parts)
    for position, part in enumerate(index.parts):
        missing = attachment.missing(position) if attachment else part.live_numbers()
        for begin in range(0, len(missing), commit_every):
            batch = missing[begin : begin + commit_every]
            new = compute_rows(part.path / _folder_name(name, manifest), part, batch, job, advance)
            folders = manifest.parts[position].attached.get(name, ())
            yield (manifest := _replace_folders(manifest, position, name, (*folders, new)))
        if len(manifest.parts[position].attached.get(name, ())) >= MERGE_FACTOR:
            joined = _join_folders(part, name, manifest)
            yield (manifest := _replace_folders(manifest, position, name, joined))


def without_attachment(manifest: Manifest, name: str) -> Manifest:
    """Return the manifest without the attachment `name`; InputError if there is none."""
    if name not in manifest.attachments:
        known = ", ".join(manifest.attachments)
        remedy = f"the index has {known}" if known else "the index has no attachments"
        raise InputError(f"no attachment {name!r} in this index", remedy=remedy)
    remaining = {key: schema for key, schema in manifest.attachments.items() if key != name}
    parts = tuple(_with_folders(entry, name, ()) for entry in manifest.parts)
    return replace(manifest, parts=parts, attachments=remaining)


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
            for source in _renumbered(folders, new)
        ]
        folder = target / _folder_name(name, manifest)
        if entry := copy_rows(folder, schema, sources):
            entries[name] = (entry,)
    return entries


def _renumbered(folders: Sequence[RowFolder], new: Numbers) -> Iterator[tuple[RowFolder, Numbers]]:
    """Yield each folder of one part with the new numbers of the documents in it.

    new: the new number of each document of the part, (documents,), −1 if deleted.
    """
    for folder in folders:
        folder.check_order()
        with reporting_damage(folder.path):
            numbers = new[folder.docs]
        yield folder, numbers


def _join_folders(part: Part, name: str, manifest: Manifest) -> tuple[RowFolderEntry, ...]:
    """Copy all folders that `manifest` names for `part` into one."""
    schema = manifest.attachments[name]
    (entry,) = (entry for entry in manifest.parts if entry.name == part.name)
    folders = [RowFolder(part.path / e.name, e, schema) for e in entry.attached[name]]
    numbers = np.full(part.documents, -1)
    numbers[part.live_numbers()] = part.live_numbers()
    sources = [*_renumbered(folders, numbers)]
    joined = copy_rows(part.path / _folder_name(name, manifest), schema, sources)
    return (joined,) if joined else ()


def _folder_name(name: str, manifest: Manifest) -> str:
    """Return a folder name that no earlier manifest has used."""
    return f"attached-{name}-{manifest.generation + 1:06}"


def _replace_folders(
    manifest: Manifest, position: int, name: str, folders: tuple[RowFolderEntry, ...]
) -> Manifest:
    """Return the next manifest, in which the part at `position` has these folders of rows."""
    parts = list(manifest.parts)
    parts[position] = _with_folders(parts[position], name, folders)
    return _successor(manifest, tuple(parts))


def _successor(manifest: Manifest, parts: tuple[PartEntry, ...]) -> Manifest:
    return replace(manifest, parts=parts, generation=manifest.generation + 1)


def _with_folders(entry: PartEntry, name: str, folders: tuple[RowFolderEntry, ...]) -> PartEntry:
    """Return `entry` with these folders of rows for the attachment `name`."""
    attached = {key: others for key, others in entry.attached.items() if key != name}
    return replace(entry, attached=attached | ({name: folders} if folders else {}))
