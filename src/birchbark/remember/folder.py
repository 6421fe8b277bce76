"""What is in the folder of a score store, and who may write there?

A file of scores for each scorer, and `write.lock`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from birchbark.artifact import TEMPORARY, flush, lock
from birchbark.errors import InputError
from birchbark.remember.file import SUFFIX, FileHead

LOCK = "write.lock"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a store: whose scores, how many, and its bytes on disk."""

    path: Path
    head: FileHead
    pairs: int
    bytes: int

    @property
    def checkpoint(self) -> str:
        """What people call it by: the file's name without its suffix."""
        return self.path.name.removesuffix(SUFFIX)


def entries(directory: Path | str) -> list[Entry]:
    """What the store in `directory` holds, by file name; writers are not disturbed.

    Raises InputError if there is no store, ArtifactError if the head of a file is damaged.
    """
    directory = Path(directory)
    if not (directory / LOCK).exists():
        raise InputError(
            "no score store here", where=str(directory), remedy="birchbark rerank --scores makes it"
        )
    found = []
    for path in sorted(directory.glob("*" + SUFFIX)):
        head, start = FileHead.read(path)
        size = path.stat().st_size
        found.append(Entry(path, head, (size - start) // head.record.itemsize, size))
    return found


def prune(directory: Path | str, checkpoint: str) -> Entry:
    """Forget the scores of the one checkpoint whose name or identifier begins so.

    Raises InputError, and changes nothing, if none or several do; ArtifactError while another
    process writes.
    """
    found = entries(directory)
    exact = [e for e in found if checkpoint in (e.checkpoint, e.head.name)]
    chosen = exact or [e for e in found if checkpoint and e.checkpoint.startswith(checkpoint)]
    if len(chosen) != 1:
        raise InputError(
            f"{'several checkpoints are' if chosen else 'no checkpoint is'} called {checkpoint!r}",
            where=str(directory),
            wanted="one of " + (", ".join(e.checkpoint for e in chosen or found) or "none"),
            remedy="nothing changed",
        )
    with locked(Path(directory)):
        chosen[0].path.unlink(missing_ok=True)
        flush(Path(directory))
    return chosen[0]


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Make the folder where there is none, and keep other writers out; the lock dies with us.

    Raises InputError if it is no folder, holds something else or may not be written, and
    ArtifactError while another process writes there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        strange = [path for path in directory.iterdir() if not _ours(path.name)]
        if strange:
            raise InputError(
                "holds something else than scores",
                where=str(directory),
                found=strange[0].name,
                remedy="name another folder",
            )
        held = lock(directory / LOCK, "score store")
    except OSError as refused:
        raise InputError(
            "no scores can be kept here",
            where=str(directory),
            wanted="a folder that may be written",
            found=str(refused.strerror),
        ) from refused
    with held:
        for left in directory.glob(TEMPORARY + "*"):
            with suppress(FileNotFoundError):
                left.unlink()
        yield


def _ours(name: str) -> bool:
    return name == LOCK or name.endswith(SUFFIX) or name.startswith(TEMPORARY)
