"""What does an index know of where its documents come from?

It is text of a form that the index does not know. A writer commits it together with the documents
that come from there, so that the two never differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from birchbark.artifact import fingerprint
from birchbark.errors import ArtifactError, is_damage
from birchbark.index.shards import read_manifest


class Origin(NamedTuple):
    """Where the documents of an index come from.

    text: what an index knows of that. checksum: its checksum.
    """

    text: bytes
    checksum: str


class NewOrigin(NamedTuple):
    """What an index is to know from now on.

    text: that. replaces: checksum of the origin from which the changes follow; empty for none.
    """

    text: bytes
    replaces: str = ""

    @property
    def checksum(self) -> str:
        """The checksum of the text, by which a further origin replaces this one."""
        return fingerprint(self.text)


def read_origin(directory: Path) -> Origin | None:
    """Return the origin of the documents of an index; None if it knows none.

    Raises what `read_manifest` raises, and ArtifactError if the origin is damaged.
    """
    manifest = read_manifest(directory)
    while manifest.origin:
        path = directory / manifest.origin
        try:
            text = path.read_bytes()
        except OSError as error:
            if not is_damage(error):
                raise
            before, manifest = manifest, read_manifest(directory)
            if manifest.origin != before.origin:
                continue  # a writer has replaced it in the meantime
            raise _damaged(path, f"cannot be read: {error.strerror}") from None
        if fingerprint(text) != manifest.origin_checksum:
            raise _damaged(path, "damaged: its checksum is wrong")
        return Origin(text, manifest.origin_checksum)
    return None


def _damaged(path: Path, what: str) -> ArtifactError:
    return ArtifactError(what, where=str(path), remedy="build the index again from the folder")
