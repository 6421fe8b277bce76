"""How is an index divided into shards, each of which is an ordinary index?

    INDEX/
      shards.json   the number of shards
      vocab.txt     as in an index in one piece
      shard-00/     an index; shard.json in it says which of how many it is
      shard-01/     …
      commit.json   while a commit to several shards is carried out: their new manifests

A commit to several shards is made by writing commit.json; only then is the manifest of each shard
replaced. If the process ends in between, readers go by commit.json, and the next writer goes on.

A document is in the shard that its id decides. Readers see the parts of all shards as those of one
index, so that scores are the same, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from birchbark.artifact import read_json, write_json
from birchbark.errors import ArtifactError, InputError
from birchbark.index import layout
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.layout import MANIFEST, SHARDS, Manifest, is_undivided_index

SHARD = "shard.json"
COMMIT = "commit.json"
FORMAT, VERSION = "birchbark shards", 1
MAX_SHARDS = 1000


def shard_folders(directory: Path) -> list[Path]:
    """Return the folders of the shards of an index; none for an index in one piece.

    Raises ArtifactError if shards.json or a shard is damaged, or a shard is missing or in the place
    of another.
    """
    if not (directory / SHARDS).exists():
        return []
    values = _read(directory / SHARDS)
    count = values.get("shards")
    if not isinstance(count, int) or not 1 <= count <= MAX_SHARDS:
        raise ArtifactError("damaged index", where=str(directory / SHARDS))
    folders = [directory / shard_name(number) for number in range(count)]
    for number, folder in enumerate(folders):
        if not (folder / MANIFEST).exists():
            raise ArtifactError(
                "a shard is missing", where=str(folder), wanted=f"{count} shards in {directory}"
            )
        found = _read(folder / SHARD)
        if (found.get("number"), found.get("shards")) != (number, count):
            raise ArtifactError(
                "this is not the shard that belongs here",
                where=str(folder),
                wanted=f"shard {number} of {count}",
                found=f"shard {found.get('number')} of {found.get('shards')}",
            )
    return folders


def shard_name(number: int) -> str:
    """Return the name of the folder of a shard, counted from 0."""
    return f"shard-{number:02}"


def shard_number(doc_id: str, count: int) -> int:
    """Return the number of the shard that a document belongs to, from 0 to `count` − 1."""
    digest = hashlib.blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % count


def own_shard(directory: Path) -> tuple[int, int] | None:
    """Return the number of a shard and of all shards; None if `directory` is no shard."""
    if not (directory / SHARD).exists():
        return None
    values = _read(directory / SHARD)
    return values["number"], values["shards"]


def write_shards(directory: Path, count: int) -> list[Path]:
    """Divide a new, empty index into `count` shards, without documents; return their folders.

    Raises InputError if there would be too many.
    """
    if not 1 <= count <= MAX_SHARDS:
        raise InputError(
            "number of shards is out of range", wanted=f"1 to {MAX_SHARDS}", found=str(count)
        )
    write_json(directory / SHARDS, {"format": FORMAT, "version": VERSION, "shards": count})
    folders = []
    for number in range(count):
        folder = directory / shard_name(number)
        folder.mkdir()
        known = {"format": FORMAT, "version": VERSION, "number": number, "shards": count}
        write_json(folder / SHARD, known)
        folders.append(folder)
    return folders


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of an index; of shards, the parts of all, whose names have the folder's.

    Raises what `Manifest.read` and `shard_folders` raise, and ArtifactError if shards were indexed
    in different ways.
    """
    folders = shard_folders(directory)
    if not folders:
        of_shard = (directory / SHARD).exists() and (directory.parent / SHARDS).exists()
        return _newest(directory, _pending(directory.parent) if of_shard else {})
    while True:
        before = manifest_id(folders)
        pending = _pending(directory)  # first, since it is deleted when all shards have what it has
        manifests = [_newest(folder, pending) for folder in folders]
        if manifest_id(folders) == before:
            return _joined(folders, manifests)


def _joined(folders: Sequence[Path], manifests: Sequence[Manifest]) -> Manifest:
    first = manifests[0]
    bare = [
        replace(m, parts=(), generation=0, attachments={}, origin="", origin_checksum="")
        for m in manifests
    ]
    for folder, manifest in zip(folders, bare, strict=True):
        if manifest != bare[0]:
            raise ArtifactError(
                "this shard was indexed in another way than the others", where=str(folder)
            )
    parts = tuple(
        replace(part, name=f"{folder.name}/{part.name}")
        for folder, manifest in zip(folders, manifests, strict=True)
        for part in manifest.parts
    )
    return replace(
        first,
        parts=parts,
        generation=sum(manifest.generation for manifest in manifests),
        attachments=_attachments(folders, manifests),
        origin=f"{folders[0].name}/{first.origin}" if first.origin else "",
    )


def check_replaceable(directory: Path) -> None:
    """Raise an error unless `directory` is an index, of any version or with damaged files.

    A file manifest.json that is not known to be an index's may belong to another program.
    """
    for name, written in ((SHARDS, FORMAT), (MANIFEST, layout.FORMAT)):
        with suppress(InputError, ArtifactError):
            values = read_json(directory / name, "index")
            if isinstance(values, dict) and values.get("format") == written:
                return
    read_manifest(directory)  # says what is missing


def manifest_folders(directory: Path) -> list[Path]:
    """Return the folders of the manifests whose replacement changes the index."""
    return shard_folders(directory) or [directory]


def manifest_id(folders: Sequence[Path]) -> tuple[tuple[int, int], ...] | None:
    """Return inode and modification time of each manifest, which each change replaces.

    folders: those of `manifest_folders`. Returns None if a manifest is missing.
    """
    try:
        states = [(folder / MANIFEST).stat() for folder in folders]
    except OSError:
        return None
    return tuple((status.st_ino, status.st_mtime_ns) for status in states)


def write_commit(directory: Path, manifests: Mapping[str, Manifest]) -> None:
    """Make changes of several shards durable and visible at once.

    manifests: folder of a shard → its new manifest, which is to be written into it next.
    """
    of_shards = {name: manifest.as_json() for name, manifest in manifests.items()}
    values = {"format": FORMAT, "version": VERSION, "manifests": of_shards}
    write_json(directory / COMMIT, values)


def end_commit(directory: Path) -> None:
    """Forget a commit that has been carried out in all shards."""
    (directory / COMMIT).unlink(missing_ok=True)


def carry_out_commit(folder: Path) -> Manifest:
    """Give a shard the manifest of a commit that was interrupted, if there is one; return it.

    Of an index in one piece, return its manifest.
    """
    manifest = read_manifest(folder)
    if manifest != Manifest.read(folder):
        manifest.write(folder)
    return manifest


def _pending(directory: Path) -> dict[str, Manifest]:
    """Return folder of a shard → its manifest in the commit that is being carried out."""
    if not (directory / COMMIT).exists():
        return {}
    try:
        manifests = _read(directory / COMMIT)["manifests"]
    except InputError:  # deleted in the meantime
        return {}
    return {name: Manifest.from_json(values, directory) for name, values in manifests.items()}


def _newest(folder: Path, pending: Mapping[str, Manifest]) -> Manifest:
    manifest = Manifest.read(folder)
    newer = pending.get(folder.name)
    return newer if newer and newer.generation > manifest.generation else manifest


def is_index(directory: Path) -> bool:
    """Return whether `directory` is an index, divided or not; see `is_undivided_index`."""
    try:
        divided = read_json(directory / SHARDS, "index")
    except InputError:
        return is_undivided_index(directory)
    except ArtifactError:
        return True
    return isinstance(divided, dict) and divided.get("format") == FORMAT


def _attachments(
    folders: Iterable[Path], manifests: Iterable[Manifest]
) -> dict[str, AttachmentSchema]:
    attachments: dict[str, AttachmentSchema] = {}
    for folder, manifest in zip(folders, manifests, strict=True):
        for name, schema in manifest.attachments.items():
            if attachments.setdefault(name, schema) != schema:
                raise ArtifactError(
                    f"this shard has {name} of another kind than the others",
                    where=str(folder),
                    remedy="repeat `birchbark index attach` with the same options",
                )
    return attachments


def _read(path: Path) -> dict[str, Any]:
    values = read_json(path, "index")
    if not isinstance(values, dict) or (values.get("format"), values.get("version")) != (
        FORMAT,
        VERSION,
    ):
        raise ArtifactError(
            "not a divided index, or one of another version",
            where=str(path),
            wanted=f"{FORMAT} {VERSION}",
        )
    return values
