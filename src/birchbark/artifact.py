"""How are files and directories written atomically, locked and fingerprinted?

Each is written under a temporary name beside its target, flushed to disk, and renamed. A killed
process may leave files behind whose names begin with `.birchbark-tmp-`; these are never read, and
folders among them are deleted when another one is written beside them.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from birchbark._version import __version__
from birchbark.errors import ArtifactError, InputError
from birchbark.systems import HAS_FOLDER_HANDLES, NO_FOLLOW, flush, lock_handle

TEMPORARY = ".birchbark-tmp-"
RANDOM_CHARACTERS = 8  # after this prefix
_OPEN_STREAM = re.compile(r"/dev/stdout|/dev/stderr|/(?:dev|proc/self)/fd/(\d+)")
LOCK_INTERVAL = 0.02  # seconds between two attempts to lock a file
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h


def refuse_existing(
    target: Path,
    *,
    replace: bool = False,
    remedy: str = "choose another path, or replace it: --replace, or replace=True",
) -> None:
    """Raise InputError if `target` exists and must not be replaced; call it before any work.

    An empty folder holds nothing that could be lost, and may be replaced, unless it is one that
    cannot: a mount point, or the process's own folder.
    """
    if target.exists() and not replace and not _is_empty_folder(target):
        raise InputError("already exists", where=str(target), remedy=remedy)


@contextmanager
def new_directory(
    target: Path, *, replace: bool = False, check: Callable[[Path], object] = lambda directory: None
) -> Iterator[Path]:
    """Yield a new directory, which becomes `target` if the block succeeds, and is deleted if not.

    check: called with the directory that would be replaced, unless it is empty; it raises unless
    that holds the same kind of artifact, so that unrelated files are never lost. Raises InputError
    if `target` exists, is not an empty directory and `replace` is false, or if `target` is not a
    directory, both before and after the block.
    """
    _check_target(target, replace, check)
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    delete_abandoned(target.parent)
    scratch, locked = _locked_directory(target.parent)
    try:
        yield scratch
        for path in (*scratch.rglob("*"), scratch):
            flush(path)
        _check_target(target, replace, check)
        if target.exists():
            _replace(target, scratch)
        else:
            scratch.rename(target)
        flush(target.parent)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    finally:
        if locked is not None:
            os.close(locked)


def _locked_directory(parent: Path) -> tuple[Path, int | None]:
    """Make a temporary directory; return it and its locked descriptor, which shows that it is used.

    Where the file system has no locks, it is not locked, and nobody else can lock it. Where folders
    have no descriptors, there is none.
    """
    while True:
        scratch = _new_name(parent)
        scratch.mkdir()
        if not HAS_FOLDER_HANDLES:
            return scratch, None
        descriptor = os.open(scratch, os.O_RDONLY)
        with suppress(OSError):
            lock_handle(descriptor)
        if scratch.exists():
            return scratch, descriptor
        os.close(descriptor)  # another process took it for abandoned before it was locked


def _new_name(parent: Path) -> Path:
    """Return the path of a new temporary file or folder.

    It is made by `mkdir` or `open("x")`, so that the system applies the process's umask, which
    cannot be read without changing it for all threads.
    """
    return parent / f"{TEMPORARY}{secrets.token_hex(RANDOM_CHARACTERS // 2)}"


def delete_abandoned(parent: Path) -> None:
    """Delete temporary directories of processes that no longer exist, if that can be known."""
    if not HAS_FOLDER_HANDLES:
        return
    for path in parent.glob(TEMPORARY + "?" * RANDOM_CHARACTERS):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                lock_handle(descriptor)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def _check_target(target: Path, replace: bool, check: Callable[[Path], object]) -> None:
    refuse_existing(target, replace=replace)
    if target.exists():
        if not target.is_dir():
            raise InputError("is not a folder", where=str(target), remedy="choose another path")
        if not _is_empty_folder(target):
            check(target)


def _is_empty_folder(path: Path) -> bool:
    if not path.is_dir() or os.path.ismount(path) or path.samefile(os.curdir):
        return False
    return not any(path.iterdir())


def _replace(target: Path, new: Path) -> None:
    """Put a directory in the place of another: atomically if the system can, else by two renames.

    The other one is then deleted as far as possible; on NFS, a file of it that is open remains.
    """
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None) if HAS_FOLDER_HANDLES else None
    names = (os.fsencode(new), os.fsencode(target))
    if renameat2 and renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0:
        discard(new)
        return
    aside = new.with_name(f"{new.name}-old")
    try:
        target.rename(aside)
        new.rename(target)
    except BaseException:
        if aside.exists() and not target.exists():
            aside.rename(target)
        raise
    discard(aside)


@contextmanager
def new_file(target: Path) -> Iterator[IO[str]]:
    """Yield a UTF-8 text file to write, which replaces `target` if the block succeeds.

    A symbolic link is followed. If `target` exists but is not a regular file (a pipe), or names an
    open stream (/dev/stdout), the text is written to it directly.
    """
    stream = _OPEN_STREAM.fullmatch(str(target))
    if is_stream(target):
        destination = os.dup(_descriptor(stream)) if stream else target
        with open(destination, "w", encoding="utf-8", newline="\n") as out:  # noqa: PTH123
            yield out
        return
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = _new_name(target.parent)
    try:
        with scratch.open("x", encoding="utf-8", newline="\n") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(target)
        flush(target.parent)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def is_stream(path: Path) -> bool:
    """Return whether what is written to `path` goes to a pipe, a device or an open stream."""
    return bool(_OPEN_STREAM.fullmatch(str(path))) or (path.exists() and not path.is_file())


def _descriptor(stream: re.Match[str]) -> int:
    return {"/dev/stdout": 1, "/dev/stderr": 2}.get(stream[0]) or int(stream[1])


def lock(path: Path, kind: str, wait: float = 0) -> IO[str]:
    """Lock the file at `path` until the returned file is closed or the process ends.

    The file is made if it does not exist. What it contains stays, and a symbolic link is not
    followed, since it may name a file of another kind.

    kind: noun for what the lock protects, for the error message. wait: seconds to wait for another
    process that holds the lock. Raises ArtifactError if it holds the lock even then, or if the file
    system has no locks, and OSError if the file cannot be written or is a link.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
    file, end = os.fdopen(handle, "r+"), time.monotonic() + wait
    try:
        while True:
            try:
                lock_handle(file.fileno())
            except BlockingIOError:
                if time.monotonic() < end:
                    time.sleep(LOCK_INTERVAL)
                    continue
                raise ArtifactError(
                    f"another process is writing to this {kind}",
                    where=str(path.parent),
                    remedy="try again when it has finished",
                ) from None
            return file
    except BaseException as error:
        file.close()
        if isinstance(error, OSError):
            raise ArtifactError(
                f"the {kind} cannot be locked: {error.strerror}",
                where=str(path),
                remedy="write it to a file system that has locks",
            ) from error
        raise


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    with new_file(path) as out:
        json.dump(value, out, indent=2, ensure_ascii=False)
        out.write("\n")


def read_json(path: Path, kind: str) -> Any:
    """Return the JSON value in the file at `path`.

    kind: noun for the artifact that the file belongs to, for error messages. Raises InputError if
    the file is missing, and ArtifactError if it is damaged.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"no {kind} here", where=str(path.parent), remedy=f"{path.name} is missing"
        ) from None
    except IsADirectoryError:
        raise ArtifactError(f"damaged {kind}: a folder, not a file", where=str(path)) from None
    except RecursionError:
        raise ArtifactError(f"damaged {kind}: nested too deeply", where=str(path)) from None
    except ValueError as broken:  # bad JSON, bad UTF-8, or a number with thousands of digits
        raise ArtifactError(f"damaged {kind}: {broken}", where=str(path)) from broken


def can_exist(path: Path) -> bool:
    """Whether the file system accepts the path, which a stranger's file may name.

    It refuses names that are too long, have a NUL or are not Unicode.
    """
    try:
        path.lstat()
    except ValueError:
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def json_checksum(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of JSON values in hex, which does not depend on the order of keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def discard(path: Path) -> None:
    """Delete a file, a link or a folder that is no longer needed, as far as that is possible."""
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)


def fingerprint(*contents: Path | bytes) -> str:
    """Hash the SHA-256 digests of files, in the order given; return the SHA-256 in hex.

    contents: paths, or the bytes that a file would have.
    """
    total = hashlib.sha256()
    for content in contents:
        if isinstance(content, bytes):
            total.update(hashlib.sha256(content).digest())
            continue
        with content.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def files_in(path: Path) -> list[Path]:
    """Return `[path]` for a file; for a folder, all files in it and its subfolders, by path."""
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def software_versions() -> dict[str, str]:
    """Return the versions of birchbark and Python, which artifacts record."""
    return {"birchbark": __version__, "python": platform.python_version()}
