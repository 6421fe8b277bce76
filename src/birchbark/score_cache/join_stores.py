"""How are the scores of stores added to another, such as those that shards have computed?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from birchbark.errors import InputError
from birchbark.score_cache.score_file import MAX_UNSYNCED_RECORDS, FileHeader, read_records
from birchbark.score_cache.score_table import ScoreTable
from birchbark.score_cache.store_folder import entries, locked
from birchbark.systems import flush


@dataclass(frozen=True, slots=True)
class Joined:
    """What was added of one scorer, from one store.

    Attributes:
        source: The folder of the store.
        header: The description of the scorer.
        added: Number of pairs that were new.
        unequal: Number of pairs that both stores have with different scores; those of the store
            that was added to are kept.
        processors: The processors that computed either store's scores, if they are known and
            differ; see `processor`. Their scores can differ in the last bits.
    """

    source: Path
    header: FileHeader
    added: int
    unequal: int
    processors: tuple[str, ...] = ()


def join_stores(directory: Path, *others: Path) -> list[Joined]:
    """Add all scores of the stores `others` to that in `directory`, which is created if missing.

    Of several scores for a pair, the first is kept. Raises what `entries` and `locked` raise, and
    ArtifactError for a damaged file; files added before it stay. `others` are only read, and
    records that a killed process left incomplete are not added.
    """
    for other in others:
        if directory.resolve() == other.resolve():
            raise InputError("a store cannot be added to itself", where=str(directory))
    files: dict[Path, list[Path]] = {}  # file of a scorer → files to add to it
    for other in others:
        for entry in entries(other):
            files.setdefault(entry.header.path(directory), []).append(entry.path)
    with locked(directory):
        return [joined for target, added in files.items() for joined in _join(target, added)]


def _join(target: Path, paths: Sequence[Path]) -> list[Joined]:
    """Add the scores of one scorer, in the files `paths`, to those in `target`."""
    if not target.exists():
        FileHeader.read(paths[0])[0].write(target.parent)
    known_header, start = FileHeader.read(target)
    known, _ = read_records(target, start, known_header)
    table = ScoreTable(known_header.width)
    table.add(known["key"], known["score"])
    joined = []
    with target.open("r+b") as out:
        out.truncate(start + known.nbytes)
        out.seek(0, 2)
        for path in paths:
            header, start = FileHeader.read(path)
            new, _ = read_records(path, start, header)
            scores, found = table.find(new["key"])
            unequal = scores[found] != new["score"][found]
            missing = new[~found]
            for begin in range(0, len(missing), MAX_UNSYNCED_RECORDS):
                out.write(missing[begin : begin + MAX_UNSYNCED_RECORDS].tobytes())
                out.flush()
                flush(target)
            table.add(missing["key"], missing["score"])
            recorded = [x.processor for x in (known_header, header)]
            differ = all(recorded) and len(set(recorded)) > 1
            rows = unequal.reshape(len(unequal), header.width).any(1)
            processors = tuple(recorded) if differ else ()
            joined.append(Joined(path.parent, header, len(missing), int(rows.sum()), processors))
    return joined
