"""What has a shard written, and from what? A record beside its files says so."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from birchbark.artifact import can_exist, fingerprint, read_json, write_json
from birchbark.cluster.shard import Shard
from birchbark.errors import ArtifactError, InputError
from birchbark.score.vector_instructions import processor
from birchbark.score_cache.store_folder import delete_store, entries

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
        processor: The processor that computed it, see `processor`; several, separated by "; ", if
            it used stored scores of others.
        files: Its files; the first is the one that names the work.
        scores: The score store of the whole, None if no scores are stored. A shard adds to a store
            of its own, which is named as its files are.
    """

    shard: Shard
    work: Mapping[str, str]
    processor: str
    files: tuple[ShardFile, ...]
    scores: Path | None

    def own_file(self, folder: Path, file: ShardFile) -> Path:
        """Return the path of one of its files, in the folder of the record."""
        return self.shard.file(folder / file.name)

    @property
    def own_scores(self) -> Path | None:
        """Its own score store."""
        return self.scores and self.shard.file(self.scores)


def write_record(
    shard: Shard,
    work: Mapping[str, str],
    targets: Mapping[Path, int],
    scores: Path | None = None,
) -> None:
    """Record that a shard is finished; called after all its files were written.

    targets: the files of the whole, in one folder → the number of their header lines. scores: see
    `ShardRecord`.
    """
    first = next(iter(targets))
    values = {
        "format": FORMAT,
        "version": VERSION,
        "shard": [shard.number, shard.count],
        "work": dict(work),
        "processor": "; ".join(sorted(_processors(shard, scores))),
        "files": [
            [target.name, header, fingerprint(shard.file(target))]
            for target, header in targets.items()
        ],
        "scores": scores and os.path.relpath(scores.resolve(), first.resolve().parent),
    }
    write_json(_record_file(shard, first), values)


def _processors(shard: Shard, scores: Path | None) -> set[str]:
    """Return this processor, and those that began the files of the scores that were used."""
    if scores is None or not (own := shard.file(scores)).exists():
        return {processor()}
    used = {entry.identifier: entry for entry in entries(own)}
    whole = entries(scores) if scores.exists() else []
    listed = [*used.values(), *(entry for entry in whole if entry.identifier in used)]
    return {processor()} | {entry.header.processor for entry in listed if entry.header.processor}


def is_finished(
    shard: Shard, work: Mapping[str, str], targets: Iterable[Path], scores: Path | None = None
) -> bool:
    """Whether this shard of the same work was finished, with its files and its scores as asked for.

    On which processor does not count. targets: the files of the whole; the first names the work.
    scores: see `ShardRecord`.
    """
    names = [target.name for target in targets]
    folder = next(iter(targets)).absolute().parent
    try:
        record = _read(_record_file(shard, folder / names[0]))
    except (InputError, ArtifactError):  # absent, damaged or of another version
        return False
    return (
        record.work == work
        and record.scores == (scores and scores.resolve())
        and [file.name for file in record.files] == names
        and all(is_unchanged(record, folder, file) for file in record.files)
    )


def is_unchanged(record: ShardRecord, folder: Path, file: ShardFile) -> bool:
    """Whether a file of a shard is as it was written."""
    path = record.own_file(folder, file)
    return path.is_file() and fingerprint(path) == file.fingerprint


def read_records(target: Path) -> list[ShardRecord]:
    """Return the records of all finished shards of the file `target`, by their numbers.

    Raises InputError if there are none, and ArtifactError for a damaged one.
    """
    records = [_read(path) for path in _record_files(target)]
    if not records:
        raise InputError(
            "no finished shards of this file",
            where=str(target),
            wanted=f"{target.name}.1-of-2{SUFFIX} and so on beside it",
            remedy="make them with the option --shard 1/2, --shard 2/2, …",
        )
    return sorted(records, key=lambda record: record.shard.number)


def read_record(shard: Shard, target: Path) -> ShardRecord:
    """Return the record of one finished shard of `target`; see `read_records`."""
    return _read(_record_file(shard, target.absolute()))


def check_division(target: Path, count: int) -> None:
    """Raise InputError if finished shards of `target` are not of a division into `count`."""
    others = [x for x in _record_files(target) if not x.name.endswith(f"-of-{count}{SUFFIX}")]
    if others:
        raise InputError(
            "there are shards of another division",
            where=str(target),
            wanted=f"…-of-{count}",
            found=others[0].name,
            remedy="use the same number of shards, or delete the others",
        )


def delete_records(target: Path) -> None:
    """Delete the files and score stores of all finished shards of `target`, and their records."""
    folder = target.absolute().parent
    for record in read_records(target):
        _record_file(record.shard, folder / target.name).unlink()
        for file in record.files:
            record.own_file(folder, file).unlink(missing_ok=True)
        if record.own_scores:
            delete_store(record.own_scores)


def _record_files(target: Path) -> list[Path]:
    pattern = re.compile(rf"{re.escape(target.name)}\.\d+-of-\d+{re.escape(SUFFIX)}")
    folder = target.absolute().parent
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in paths if pattern.fullmatch(path.name)]


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
        for name, header, _ in files:
            if type(header) is not int or header < 0:
                raise ValueError(f"the header {header!r}")
            # beside the record, and nowhere else
            if name in ("", "..") or Path(name).name != name or not can_exist(path.with_name(name)):
                raise ValueError(f"the name {name!r}")
        return ShardRecord(
            Shard(number, count),
            dict(values["work"]),
            values["processor"],
            tuple(ShardFile(*file) for file in files),
            values["scores"] and (path.parent / values["scores"]).resolve(),
        )
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise ArtifactError(
            "damaged record of a shard", where=str(path), found=repr(error)
        ) from None
