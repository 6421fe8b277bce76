"""Which files of an index are damaged?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from birchbark.artifact import fingerprint
from birchbark.errors import ArtifactError
from birchbark.index.attachment_reader import RowFolder
from birchbark.index.attachment_schema import AttachmentSchema, RowFolderEntry
from birchbark.index.attachment_writer import folder_checksum
from birchbark.index.layout import VOCABULARY, Manifest, PartEntry
from birchbark.index.origin import read_origin
from birchbark.index.part import Part
from birchbark.index.part_builder import part_checksum
from birchbark.index.shards import read_manifest, shard_folders


def find_damage(
    directory: Path | str, advance: Callable[[int], object] = lambda parts: None
) -> list[str]:
    """Verify all checksums of an index; return one message per damaged file or folder.

    This reads every file. A commit meanwhile replaces files, whose successors are then verified.
    advance: called with 1 after each part. Raises InputError if there is no manifest, ArtifactError
    if the manifest itself is damaged.
    """
    manifest, lines = read_manifest(Path(directory)), []
    for folder in (Path(directory), *shard_folders(Path(directory))):
        vocabulary = folder / VOCABULARY
        if manifest.vocabulary and (
            not vocabulary.exists() or fingerprint(vocabulary) != manifest.vocabulary
        ):
            lines.append(f"{vocabulary}: its checksum is wrong")
    verified: dict[tuple[str, ...], list[str]] = {}
    damaged = _verify_parts(Path(directory), manifest, verified, advance)
    while damaged and manifest != (newer := read_manifest(Path(directory))):
        manifest = newer
        damaged = _verify_parts(Path(directory), manifest, verified, lambda parts: None)
    lines += damaged
    try:
        read_origin(Path(directory))
    except ArtifactError as error:
        lines.append(f"{error.where}: {error.what}")
    return lines


def _verify_parts(
    directory: Path,
    manifest: Manifest,
    verified: dict[tuple[str, ...], list[str]],
    advance: Callable[[int], object],
) -> list[str]:
    """Verify what has not been verified before, and return the messages of all these parts.

    verified: the names and checksums of files → the messages about them, to be extended.
    """
    lines = []
    for entry in manifest.parts:
        part = directory / entry.name
        key: tuple[str, ...] = (entry.name, entry.checksum, entry.deleted, entry.deleted_checksum)
        if key not in verified:
            damage = _verify_part(part, entry) or _open_part(directory, entry, manifest.forward)
            verified[key] = damage
        lines += verified[key]
        for name, schema in manifest.attachments.items():
            for rows in entry.attached.get(name, ()):
                key = (entry.name, rows.name, rows.checksum)
                if key not in verified:
                    verified[key] = _verify_rows(part / rows.name, rows, schema)
                lines += verified[key]
        advance(1)
    return lines


def _verify_part(part: Path, entry: PartEntry) -> list[str]:
    lines = []
    try:
        if part_checksum(part) != entry.checksum:
            lines.append(f"{part}: the checksum of its files is wrong")
    except OSError as error:
        lines.append(f"{part}: {error.strerror}")
    if entry.deleted:
        deleted = part / entry.deleted
        if not deleted.exists() or fingerprint(deleted) != entry.deleted_checksum:
            lines.append(f"{deleted}: the checksum of the list of deletions is wrong")
    return lines


def _open_part(directory: Path, entry: PartEntry, forward: bool) -> list[str]:
    """Check names and lengths, which the checksums of contents do not cover."""
    try:
        Part(directory, entry, forward)
    except ArtifactError as error:
        return [f"{directory / entry.name}: {error.what}"]
    return []


def _verify_rows(folder: Path, entry: RowFolderEntry, schema: AttachmentSchema) -> list[str]:
    try:
        if folder_checksum(folder) != entry.checksum:
            return [f"{folder}: the checksum of attached rows is wrong"]
        RowFolder(folder, entry, schema).check_order()
    except OSError as error:
        return [f"{folder}: {error.strerror}"]
    except ArtifactError as error:
        return [f"{folder}: {error.what}"]
    return []
