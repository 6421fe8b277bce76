"""What do operating systems do differently, and what is done where POSIX is missing (Windows)?

There, folders have no descriptors: they are not flushed to disk, and folders that a killed process
has left are not deleted.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

try:
    import fcntl as fcntl
    import resource as resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]
    with suppress(ImportError):
        import msvcrt

TROUBLES = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO}
"""What an OSError tells that may pass, and is no fault of the file: a full disk, for example."""
HAS_FOLDER_HANDLES = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
BINARY: int = getattr(os, "O_BINARY", 0)  # else Windows converts line endings
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
LOCKED_BYTE = 1 << 30  # may lie beyond the end; Windows lets no other process read it


def usable_processors() -> int:
    """Return the number of processors that this process may use, at least 1.

    Where the system does not limit a process to some of them (macOS), it is that of the machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lock_handle(handle: int) -> None:
    """Lock an open file until its descriptor is closed; BlockingIOError if another one holds it."""
    if fcntl:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError as error:
        raise BlockingIOError(*error.args) from None
    finally:
        os.lseek(handle, 0, os.SEEK_SET)


def flush(path: Path) -> None:
    """Flush the file or directory at `path` to disk (fsync)."""
    if not HAS_FOLDER_HANDLES and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if HAS_FOLDER_HANDLES else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def allow_open_files() -> None:
    """Raise the limit on open files to what the system allows; an index may have many parts."""
    if resource:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def most_open_files() -> int | None:
    """Return the limit on open files; None if there is none."""
    if not resource:
        return None
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if allowed == resource.RLIM_INFINITY else allowed
