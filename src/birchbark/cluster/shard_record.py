"""What has a shard written, and from what? A record beside its files says so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from birchbark.artifact import fingerprint, read_json, write_json
from birchbark.cluster.shard import Shard
from birchbark.errors import ArtifactError, InputError
from birchbark.score.processor import processor

FORMAT = "birchbark shard"
VERSION = 1
SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A file that a shard has written.

    Attributes:
        name: The name of the file of the whole; all files are in the same folder.
        header: The number of its first lines that each shard repeats.
        fingerprint: The hash of the shard's file.
    """

    name: str
    header: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """The record of a finished shard.

    Attributes:
        work: Name → hash of what decides the result: inputs, models, settings and versions.
        processor: The processor that computed it; see `processor`.
        files: Its files; the first is the one that names the work.
    """

    shard: Shard
    work: Mapping[str, str]
    processor: str
    files: tuple[ShardFile, ...]


def write_record(shard: Shard, work: Mapping[str, str], targets: Mapping[Path, int]) -> None:
    """Record that a shard is finished; called after all its files were written.

    targets: the files of the whole, in one folder → the number of their header lines.
    """
    first = next(iter(targets))
    values = {
        "format": FORMAT,
        "version": VERSION,
        "shard": [shard.number, shard.count],
        "work": dict(work),
        "processor": processor(),
        "files": [
            [target.name, header, fingerprint(shard.file(target))]
            for target, header in targets.items()
        ],
    }
    write_json(_record_file(shard, first), values)


def read_records(target: Path) -> list[ShardRecord]:
    """Return the records of all finished shards of the file `target`, by their numbers.

    Raises InputError if there are none, and ArtifactError for a damaged one.
    """
    pattern = re.compile(rf"{re.escape(target.name)}\.\d+-of-\d+{re.escape(SUFFIX)}")
    folder = target.absolute().parent
    names = sorted(folder.iterdir()) if folder.is_dir() else []
    records = [_read(path) for path in names if pattern.fullmatch(path.name)]
    if not records:
        raise InputError(
            "no finished shards of this file",
            where=str(target),
            wanted=f"{target.name}.1-of-2{SUFFIX} and so on beside it",
            remedy="make them with the option --shard 1/2, --shard 2/2, …",
        )
    return sorted(records, key=lambda record: record.shard.number)


def delete_records(target: Path) -> None:
    """Delete the files of all finished shards of `target`, and their records."""
    folder = target.absolute().parent
    for record in read_records(target):
        for file in record.files:
            record.shard.file(folder / file.name).unlink(missing_ok=True)
        _record_file(record.shard, folder / target.name).unlink()


def _record_file(shard: Shard, target: Path) -> Path:
    path = shard.file(target)
    return path.with_name(path.name + SUFFIX)


def _read(path: Path) -> ShardRecord:
    values: Any = read_json(path, "shard")
    try:
        if (values["format"], values["version"]) != (FORMAT, VERSION):
            raise ArtifactError(
                "a shard of another version",
                where=str(path),
                wanted=f"{FORMAT} {VERSION}",
                found=f"{values['format']} {values['version']}",
                remedy="make all shards with the same version of birchbark",
            )
        number, count = values["shard"]
        files: Sequence[Sequence[Any]] = values["files"]
        return ShardRecord(
            Shard(number, count),
            dict(values["work"]),
            values["processor"],
            tuple(ShardFile(*file) for file in files),
        )
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise ArtifactError(
            "damaged record of a shard", where=str(path), found=repr(error)
        ) from None
