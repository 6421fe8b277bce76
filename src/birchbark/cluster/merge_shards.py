"""How do the files of all shards become the files of the whole?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from birchbark.artifact import new_file
from birchbark.cluster.shard_record import ShardFile, ShardRecord, is_unchanged, read_records
from birchbark.errors import ArtifactError, InputError
from birchbark.score_cache.join_stores import join_stores
from birchbark.score_cache.store_folder import check_store

SHOWN = 10  # missing shards in a message


def merge_shards(target: Path, *, unlike_processors: bool = False) -> tuple[list[Path], int]:
    """Join the files of all shards of `target`; return the files written and the number of shards.

    They are the files that a single process would have written, on the CPU byte for byte. The
    scores of the shards are added to the store of the whole.

    unlike_processors: whether the shards may have been computed by processors with other vector
    instructions, whose scores can differ in their last bits.
    Before anything is written, raises InputError if shards are missing, belong to another number
    of shards, or were made from other inputs or by unlike processors; and ArtifactError if a file
    is missing or was changed.
    """
    records = read_records(target)
    _check_complete(records, target)
    for record in records[1:]:
        check_alike(records[0], record, target, unlike_processors=unlike_processors)
    folder = target.absolute().parent
    for record in records:
        for file in record.files:
            _check_unchanged(record, file, folder)
    for scores in {record.scores for record in records if record.scores}:
        check_store(scores)
    written = []
    for number, file in enumerate(records[0].files):
        whole = folder / file.name
        parts = [(r.shard.file(whole), r.files[number].header) for r in records]
        _join(whole, parts)
        written.append(whole)
    _join_scores(records)
    return written, len(records)


def _join_scores(records: Sequence[ShardRecord]) -> None:
    """Add the scores of all shards to the store of the whole; warn of those that are missing."""
    own_stores: dict[Path, list[Path]] = {}
    for record in records:
        if record.scores and record.own_scores:
            own_stores.setdefault(record.scores, []).append(record.own_scores)
    for scores, stores in own_stores.items():
        for missing in (store for store in stores if not store.exists()):
            warnings.warn(
                f"{missing} is missing: the scores of this shard are not added to {scores}",
                stacklevel=3,
            )
        if existing := [store for store in stores if store.exists()]:
            join_stores(scores, *existing)


def _check_complete(records: Sequence[ShardRecord], target: Path) -> None:
    counts = sorted({record.shard.count for record in records})
    if len(counts) > 1:
        raise InputError(
            "there are shards of different divisions",
            where=str(target),
            found=", ".join(f"…-of-{count}" for count in counts),
            remedy="delete those that are not wanted",
        )
    present = {record.shard.number for record in records}
    missing = (n for n in range(1, counts[0] + 1) if n not in present)
    if first := [*islice(missing, SHOWN)]:
        listed = ", ".join(f"--shard {number}/{counts[0]}" for number in first)
        more = counts[0] - len(present) - len(first)
        listed += f", and {more:,} more" if more else ""
        raise InputError(
            "shards are missing",
            where=str(target),
            wanted=f"{counts[0]} shards",
            found=f"{len(present)} finished",
            remedy=f"run the command once with each of {listed}",
        )


def check_alike(
    first: ShardRecord, record: ShardRecord, target: Path, *, unlike_processors: bool
) -> None:
    """Raise InputError if two shards of `target` cannot be joined; see `merge_shards`."""
    names = [file.name for file in record.files]
    changed = [key for key, value in record.work.items() if first.work.get(key) != value]
    if changed or names != [file.name for file in first.files]:
        differences = ", ".join(changed) or "the files that they write"
        raise InputError(
            f"shards {first.shard} and {record.shard} were made from different inputs",
            where=str(target),
            found=f"different {differences}",
            remedy="run again the shards that are out of date",
        )
    if record.processor != first.processor and not unlike_processors:
        raise InputError(
            f"shards {first.shard} and {record.shard} were computed by unlike processors, "
            "whose scores can differ in their last bits",
            where=str(target),
            found=f"{first.processor}; {record.processor}",
            remedy="delete those of one kind and run them again on the other, or use "
            "--unlike-processors",
        )


def _check_unchanged(record: ShardRecord, file: ShardFile, folder: Path) -> None:
    path = record.own_file(folder, file)
    if not path.is_file():
        raise ArtifactError(
            "a file of a finished shard is missing",
            where=str(path),
            remedy=f"run the command with --shard {record.shard} again",
        )
    if not is_unchanged(record, folder, file):
        raise ArtifactError(
            "a file of a finished shard was changed",
            where=str(path),
            remedy=f"run the command with --shard {record.shard} again",
        )


def _join(whole: Path, parts: Sequence[tuple[Path, int]]) -> None:
    with new_file(whole) as out:
        for number, (path, header) in enumerate(parts):
            with path.open(encoding="utf-8", newline="") as lines:
                out.writelines(islice(lines, header if number else 0, None))
