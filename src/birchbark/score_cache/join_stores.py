"""How are the scores of one store added to another, such as those that a shard has computed?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from birchbark.artifact import flush
from birchbark.errors import InputError
from birchbark.score_cache.score_file import FileHeader, read_records
from birchbark.score_cache.score_table import ScoreTable
from birchbark.score_cache.store_folder import entries, locked


@dataclass(frozen=True, slots=True)
class Joined:
    """What was added of one scorer.

    Attributes:
        header: The description of the scorer.
        added: Number of pairs that were new.
        unequal: Number of pairs that both stores have with different scores; those of the store
            that was added to are kept.
        processors: The processors that computed either store's scores, if they are known and
            differ; see `processor`. Their scores can differ in the last bits.
    """

    header: FileHeader
    added: int
    unequal: int
    processors: tuple[str, ...] = ()


def join_stores(directory: Path, other: Path) -> list[Joined]:
    """Add all scores of the store `other` to that in `directory`, which is created if missing.

    Raises what `entries` and `locked` raise, and ArtifactError for a damaged file; files added
    before it stay. `other` is only read, and records that a killed process left incomplete are
    not added.
    """
    if directory.resolve() == other.resolve():
        raise InputError("a store cannot be added to itself", where=str(directory))
    listed = entries(other)
    with locked(directory):
        return [_join(directory, entry.path) for entry in listed]


def _join(directory: Path, path: Path) -> Joined:
    header, start = FileHeader.read(path)
    new, _ = read_records(path, start, header)
    target = header.path(directory)
    if not target.exists():
        header.write(directory)
    known_header, start = FileHeader.read(target)
    known, _ = read_records(target, start, known_header)
    table = ScoreTable(header.width)
    table.add(known["key"], known["score"])
    scores, found = table.find(new["key"])
    unequal = scores[found] != new["score"][found]
    missing = new[~found]
    with target.open("r+b") as out:
        out.truncate(start + known.nbytes)
        out.seek(0, 2)
        out.write(missing.tobytes())
    flush(target)
    recorded = [x.processor for x in (known_header, header)]
    differ = all(recorded) and len(set(recorded)) > 1
    rows = unequal.reshape(len(unequal), header.width).any(1)
    return Joined(header, len(missing), int(rows.sum()), tuple(recorded) if differ else ())
