"""Is every byte of an index as it was written?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from birchbark.artifact import fingerprint
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
        found += _damage(Path(directory) / entry.name, entry)
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
