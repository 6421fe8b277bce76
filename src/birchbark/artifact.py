"""How does anything reach the disk whole or not at all, and say what it was made from?

Directories and files are written under a temporary name beside their place, flushed to the disk,
and renamed. What a killed process leaves behind starts with `.tmp-` and is never read.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from birchbark._version import __version__
from birchbark.errors import ArtifactError, InputError

TEMPORARY = ".tmp-"
_OPEN_STREAM = re.compile(r"/dev/stdout|/dev/stderr|/(?:dev|proc/self)/fd/(\d+)")
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h


def refuse_existing(
    target: Path,
    *,
    replace: bool = False,
    remedy: str = "choose another name, or ask to replace it",
) -> None:
    """Raise InputError if `target` exists and is not to be replaced: before any work is done."""
    if target.exists() and not replace:
        raise InputError("already exists", where=str(target), remedy=remedy)


@contextmanager
def new_directory(
    target: Path, *, replace: bool = False, check: Callable[[Path], object] = lambda there: None
) -> Iterator[Path]:
    """A directory to fill; it appears at `target` when the block ends well, else it is removed.

    check: called with a directory that is to be replaced; raises unless it is one of the same kind,
    so that nobody's other files are lost. Raises InputError if `target` exists, before or after the
    block, and `replace` is false, or if it is no directory.
    """
    _make_room(target, replace, check)
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=target.parent))
    try:
        yield scratch
        scratch.chmod(0o777 & ~_umask())
        for path in (*scratch.rglob("*"), scratch):
            flush(path)
        _make_room(target, replace, check)
        if target.exists():
            _exchange(scratch, target)
            shutil.rmtree(scratch)
        else:
            scratch.rename(target)
        flush(target.parent)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _make_room(target: Path, replace: bool, check: Callable[[Path], object]) -> None:
    refuse_existing(target, replace=replace)
    if target.exists():
        if not target.is_dir():
            raise InputError(
                "is no folder that could be replaced", where=str(target), remedy="name another"
            )
        check(target)


def _exchange(one: Path, other: Path) -> None:
    """Swap two directories in one step where the system can, else in three."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    names = (os.fsencode(one), os.fsencode(other))
    if renameat2 and renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0:
        return
    aside = one.with_name(f"{one.name}-old")
    other.rename(aside)
    one.rename(other)
    aside.rename(one)


@contextmanager
def new_file(target: Path) -> Iterator[IO[str]]:
    """A UTF-8 text file to write; it takes the place of `target` when the block ends well.

    A symbolic link is followed. What is no regular file (a pipe), or stands for a stream that is
    open already (/dev/stdout), is not replaced: the text is written to it.
    """
    stream = _OPEN_STREAM.fullmatch(str(target))
    if stream or (target.exists() and not target.is_file()):
        there = os.dup(_descriptor(stream)) if stream else target
        with open(there, "w", encoding="utf-8", newline="\n") as out:  # noqa: PTH123
            yield out
        return
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        scratch = Path(name)
        scratch.chmod(0o666 & ~_umask())
        scratch.replace(target)
        flush(target.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _descriptor(stream: re.Match[str]) -> int:
    return {"/dev/stdout": 1, "/dev/stderr": 2}.get(stream[0]) or int(stream[1])


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def lock(path: Path, kind: str) -> IO[str]:
    """The lock file at `path`, held until it is closed or the process dies.

    Raises ArtifactError, which calls the artifact by its `kind`, if another process holds it, and
    OSError if the file cannot be written.
    """
    held = path.open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise ArtifactError(
            f"another process is writing to this {kind}",
            where=str(path.parent),
            remedy="wait until it is done, and try again",
        ) from None
    return held


def flush(path: Path) -> None:
    """Ask the disk to keep the file or directory at `path`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON that people can read, whole or not at all."""
    with new_file(path) as out:
        json.dump(value, out, indent=2, ensure_ascii=False)
        out.write("\n")


def read_json(path: Path, what: str) -> Any:
    """The JSON at `path`. Raises InputError if there is none, ArtifactError if it is damaged."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"no {what} here", where=str(path.parent), remedy=f"{path.name} is missing"
        ) from None
    except IsADirectoryError:
        raise ArtifactError(f"damaged {what}: a folder, not a file", where=str(path)) from None
    except RecursionError:
        raise ArtifactError(f"damaged {what}: nested too deeply", where=str(path)) from None
    except ValueError as broken:  # of JSON, of UTF-8, or a number of thousands of digits
        raise ArtifactError(f"damaged {what}: {broken}", where=str(path)) from broken


def fingerprint(*paths: Path) -> str:
    """SHA-256 in hex over the bytes of the files at `paths`, in the order given."""
    total = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def fingerprint_all(path: Path) -> str:
    """As `fingerprint`, of the file at `path`, or of all files below the folder in their order."""
    return fingerprint(*files_in(path))


def files_in(path: Path) -> list[Path]:
    """The file at `path`, or all files below the folder in the order of their names."""
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def origin() -> dict[str, str]:
    """What made this artifact: versions of birchbark and Python."""
    return {"birchbark": __version__, "python": platform.python_version()}
