"""What does the folder of a score store contain, and how is it locked?

It contains one score file per scorer, and `write.lock`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from birchbark.artifact import TEMPORARY, lock
from birchbark.errors import InputError
from birchbark.score_cache.score_file import SUFFIX, FileHeader
from birchbark.systems import flush

LOCK = "write.lock"


@dataclass(frozen=True, slots=True)
class Entry:
    """A score file of a store.

    Attributes:
        path: Path of the file.
        header: Description of its scorer.
        pairs: Number of pairs in it.
        bytes: Its size on disk.
    """

    path: Path
    header: FileHeader
    pairs: int
    bytes: int

    @property
    def identifier(self) -> str:
        """The scorer's identifier: the file's name without the suffix."""
        return self.path.name.removesuffix(SUFFIX)


def entries(directory: Path | str) -> list[Entry]:
    """Return the files of the store in `directory`, sorted by name; a writer is not disturbed.

    Raises InputError if there is no store, and ArtifactError if a file's header is damaged.
    """
    directory = Path(directory)
    if not (directory / LOCK).exists():
        raise InputError(
            "no score store here",
            where=str(directory),
            remedy="birchbark rerank --scores creates one",
        )
    listed = []
    for path in sorted(directory.glob("*" + SUFFIX)):
        header, start = FileHeader.read(path)
        size = path.stat().st_size
        listed.append(Entry(path, header, (size - start) // header.record.itemsize, size))
    return listed


def prune(directory: Path | str, scorer: str) -> Entry:
    """Delete the scores of one scorer, and return the deleted entry.

    scorer: the scorer's name, or the beginning of its identifier. Raises InputError if no scorer or
    several match, and ArtifactError while another process is writing; nothing is deleted then.
    """
    listed = entries(directory)
    exact = [e for e in listed if scorer in (e.identifier, e.header.name)]
    matches = exact or [e for e in listed if scorer and e.identifier.startswith(scorer)]
    if len(matches) != 1:
        raise InputError(
            f"{'several scorers match' if matches else 'no scorer matches'} {scorer!r}; "
            "nothing was deleted",
            where=str(directory),
            wanted="one of " + (", ".join(e.identifier for e in matches or listed) or "none"),
        )
    with locked(Path(directory)):
        matches[0].path.unlink(missing_ok=True)
        flush(Path(directory))
    return matches[0]


def delete_store(directory: Path) -> None:
    """Delete a store; without effect if there is none. Raises what `locked` raises."""
    if not (directory / LOCK).exists():
        return
    with locked(directory):
        for path in directory.iterdir():
            if path.name != LOCK:
                path.unlink()
    (directory / LOCK).unlink()  # after it was closed, since NFS keeps open files
    directory.rmdir()


@contextmanager
def locked(directory: Path, wait: float = 0) -> Iterator[None]:
    """Lock the folder for writing until the block or the process ends; create it if missing.

    wait: seconds to wait for another process that is writing to it. Raises InputError if
    `directory` is not a folder, contains other files or is not writable, and ArtifactError if
    another process is writing to it even then.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        check_store(directory)
        held_lock = lock(directory / LOCK, "score store", wait)
    except OSError as refused:
        raise _unusable(directory, refused) from refused
    with held_lock:
        for leftover in directory.glob(TEMPORARY + "*"):
            with suppress(FileNotFoundError):
                leftover.unlink()
        yield


def check_store(directory: Path) -> None:
    """Raise InputError if `directory` exists and is no folder, or contains other files."""
    if not directory.exists():
        return
    try:
        names = [path.name for path in directory.iterdir()]
    except OSError as refused:
        raise _unusable(directory, refused) from refused
    foreign = [name for name in names if not _belongs_to_store(name)]
    if foreign:
        raise InputError(
            "the folder holds files that are not scores",
            where=str(directory),
            found=foreign[0],
            remedy="choose another folder",
        )


def _unusable(directory: Path, refused: OSError) -> InputError:
    return InputError(
        "scores cannot be stored here",
        where=str(directory),
        wanted="a writable folder",
        found=str(refused.strerror),
    )


def _belongs_to_store(name: str) -> bool:
    return name == LOCK or name.endswith(SUFFIX) or name.startswith(TEMPORARY)
