"""How does a manifest name the folders of attached rows, and when are folders joined?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from birchbark.index.attachment_reader import Numbers, RowFolder
from birchbark.index.attachment_schema import AttachmentSchema, RowFolderEntry
from birchbark.index.attachment_writer import copy_rows
from birchbark.index.layout import Manifest, PartEntry
from birchbark.index.merge import MERGE_FACTOR
from birchbark.index.part import Part


def folder_name(name: str, manifest: Manifest) -> str:
    """Return a folder name for rows of the attachment `name` that no earlier manifest has used."""
    return f"attached-{name}-{manifest.generation + 1:06}"


def folders_of(manifest: Manifest, position: int, name: str) -> tuple[RowFolderEntry, ...]:
    """Return the folders of rows of the attachment `name` for the part at `position`."""
    return manifest.parts[position].attached.get(name, ())


def successor(manifest: Manifest, parts: tuple[PartEntry, ...]) -> Manifest:
    """Return the next manifest, with these parts."""
    return replace(manifest, parts=parts, generation=manifest.generation + 1)


def with_attachment(manifest: Manifest, name: str, schema: AttachmentSchema) -> Manifest:
    """Return the manifest with the attachment `name`, which no document has yet."""
    empty = tuple(with_folders(entry, name, ()) for entry in manifest.parts)
    return replace(manifest, parts=empty, attachments={**manifest.attachments, name: schema})


def with_folders(entry: PartEntry, name: str, folders: tuple[RowFolderEntry, ...]) -> PartEntry:
    """Return `entry` with these folders of rows for the attachment `name`."""
    attached = {key: others for key, others in entry.attached.items() if key != name}
    return replace(entry, attached=attached | ({name: folders} if folders else {}))


def with_folder(manifest: Manifest, position: int, name: str, folder: RowFolderEntry) -> Manifest:
    """Return the next manifest, in which the part at `position` has one more folder of rows."""
    folders = (*folders_of(manifest, position, name), folder)
    return _replace_folders(manifest, position, name, folders)


def join_similar(part: Part, position: int, name: str, manifest: Manifest) -> Iterator[Manifest]:
    """Join folders of similar size while there are ten or more of them; yield each next manifest.

    A part with n rows then has at most about 10 · log10(n) folders, and each row is copied about
    log10(n) times, however small the steps are in which rows are attached.

    part: the part at `position` of the index that `manifest` describes.
    """
    while group := _similar_folders(folders_of(manifest, position, name)):
        manifest = join(part, position, name, manifest, group)
        yield manifest


def join(
    part: Part, position: int, name: str, manifest: Manifest, group: Sequence[RowFolderEntry]
) -> Manifest:
    """Copy the folders `group` of a part into one; return the next manifest, which names it."""
    schema = manifest.attachments[name]
    folders = [RowFolder(part.path / entry.name, entry, schema) for entry in group]
    numbers = np.full(part.documents, -1)
    numbers[part.live_numbers()] = part.live_numbers()
    sources = [*renumbered(folders, numbers)]
    joined = copy_rows(part.path / folder_name(name, manifest), schema, sources)
    others = tuple(entry for entry in folders_of(manifest, position, name) if entry not in group)
    return _replace_folders(manifest, position, name, (*others, joined) if joined else others)


def renumbered(folders: Sequence[RowFolder], new: Numbers) -> Iterator[tuple[RowFolder, Numbers]]:
    """Yield each folder of one part with the new numbers of the documents in it.

    new: the new number of each document of the part, (documents,), −1 if deleted.
    """
    for folder in folders:
        folder.check_order()
        with folder.reporting_damage():
            numbers = new[folder.docs]
        yield folder, numbers


def _similar_folders(folders: Sequence[RowFolderEntry]) -> list[RowFolderEntry]:
    """Return ten or more folders whose numbers of rows have as many digits, or an empty list.

    Of several such groups, the one with the smallest folders is returned.
    """
    groups: dict[int, list[RowFolderEntry]] = {}
    for entry in folders:
        groups.setdefault(len(str(max(entry.rows))), []).append(entry)
    large = [digits for digits, group in groups.items() if len(group) >= MERGE_FACTOR]
    return groups[min(large)] if large else []


def _replace_folders(
    manifest: Manifest, position: int, name: str, folders: tuple[RowFolderEntry, ...]
) -> Manifest:
    """Return the next manifest, in which the part at `position` has these folders of rows."""
    parts = list(manifest.parts)
    parts[position] = with_folders(parts[position], name, folders)
    return successor(manifest, tuple(parts))
