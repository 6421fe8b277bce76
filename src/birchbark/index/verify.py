"""Is every byte of an index as it was written?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from birchbark.artifact import fingerprint
from birchbark.errors import ArtifactError
from birchbark.index.attachment_reader import AttachedRows
from birchbark.index.attachment_schema import AttachedEntry, AttachmentSchema
from birchbark.index.attachment_writer import checksum as rows_checksum
from birchbark.index.layout import VOCABULARY, Manifest, PartEntry
from birchbark.index.part import checksum


def damage(
    directory: Path | str, advance: Callable[[int], object] = lambda parts: None
) -> list[str]:
    """What is damaged, a line each; nothing if all checksums hold. Reads every file.

    advance: called with 1 after each part. Raises ArtifactError if there is no manifest to check
    by.
    """
    manifest, found = Manifest.read(Path(directory)), []
    vocabulary = Path(directory) / VOCABULARY
    if manifest.vocabulary and (
        not vocabulary.exists() or fingerprint(vocabulary) != manifest.vocabulary
    ):
        found.append(f"{vocabulary}: it is not the one that was written")
    for entry in manifest.parts:
        part = Path(directory) / entry.name
        found += _damage(part, entry)
        for name, schema in manifest.attachments.items():
            for rows in entry.attached.get(name, ()):
                found += _damaged_rows(part / rows.name, rows, schema)
        advance(1)
    return found


def _damage(part: Path, entry: PartEntry) -> list[str]:
    found = []
    try:
        if checksum(part) != entry.checksum:
            found.append(f"{part}: its files are not those that were written")
    except OSError as missing:
        found.append(f"{part}: {missing.strerror}")
    if entry.deleted:
        deleted = part / entry.deleted
        if not deleted.exists() or fingerprint(deleted) != entry.deleted_checksum:
            found.append(f"{deleted}: the list of deletions is not the one that was written")
    return found


def _damaged_rows(folder: Path, entry: AttachedEntry, schema: AttachmentSchema) -> list[str]:
    try:
        if rows_checksum(folder) != entry.checksum:
            return [f"{folder}: attached rows are not those that were written"]
        AttachedRows(folder, entry, schema).check_order()
    except OSError as missing:
        return [f"{folder}: {missing.strerror}"]
    except ArtifactError as broken:
        return [f"{folder}: {broken.what}"]
    return []
