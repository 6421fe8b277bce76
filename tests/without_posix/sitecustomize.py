"""Takes from this Python what Windows lacks, as far as that can be shown on another system.

No module of POSIX, no descriptors of folders, no rename over what exists, no deletion or renaming
of what is open or mapped, no flush of what is open for reading only.
"""

import errno
import fcntl
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_ASYNC"):
    delattr(os, name)
for name in ("killpg", "sched_getaffinity"):
    delattr(os, name)
for name in ("SIGHUP", "SIGALRM", "SIGXCPU", "setitimer", "alarm"):
    delattr(signal, name)
os.supports_dir_fd.clear()
os.supports_fd.clear()

_open, _fsync, _scandir = os.open, os.fsync, os.scandir
_flags, _flock = fcntl.F_GETFL, fcntl.flock


def open_file(path, flags, mode=0o777, *, dir_fd=None):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd")
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return _open(path, flags, mode)


def fsync(handle):
    if fcntl.fcntl(handle, _flags) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    _fsync(handle)


def check_not_used(path):
    """Raise PermissionError if this process has the file, or one in the folder, open or mapped."""
    path = os.path.realpath(path)
    if os.path.basename(path).startswith("tmp"):
        return  # of tempfile, which Windows deletes otherwise
    maps = Path("/proc/self/maps").read_text().splitlines()
    used = {line.split(None, 5)[5] for line in maps if "/" in line}
    for handle in os.listdir("/proc/self/fd"):
        try:
            used.add(os.readlink(f"/proc/self/fd/{handle}"))
        except OSError:
            continue
    if any(name == path or name.startswith(path + "/") for name in used):
        raise PermissionError(errno.EACCES, "used by another process", path)


def guarded(function, *, checks_target=False, replaces=True):
    def checked(path, *arguments, **options):
        if options.get("dir_fd") is not None:
            raise NotImplementedError("dir_fd")
        check_not_used(path)
        if checks_target and os.path.lexists(arguments[0]):
            if not replaces or os.path.isdir(arguments[0]):
                raise FileExistsError(errno.EEXIST, "File exists", str(arguments[0]))
            check_not_used(arguments[0])
        return function(path, *arguments, **options)

    return checked


class Entry:
    """An entry of a folder, whose status has no number of the file."""

    def __init__(self, entry):
        self.entry = entry

    def __getattr__(self, name):
        return getattr(self.entry, name)

    def __fspath__(self):
        return self.entry.path

    def stat(self, *, follow_symlinks=True):
        status = self.entry.stat(follow_symlinks=follow_symlinks)
        known = {name: getattr(status, name) for name in dir(status) if name.startswith("st_")}
        return SimpleNamespace(**{**known, "st_ino": 0})


@contextmanager
def scandir(path="."):
    if isinstance(path, int):
        raise TypeError("scandir: no descriptors of folders")
    with _scandir(path) as entries:
        yield map(Entry, entries)


os.open, os.fsync, os.scandir = open_file, fsync, scandir
os.unlink = os.remove = guarded(os.unlink)
os.rmdir = guarded(os.rmdir)
os.rename = guarded(os.rename, checks_target=True, replaces=False)
os.replace = guarded(os.replace, checks_target=True)

import shutil  # noqa: E402, F401, chooses by supports_dir_fd
import subprocess  # noqa: E402, F401, chooses by whether there is a module msvcrt

sys.modules["msvcrt"] = SimpleNamespace(
    LK_NBLCK=2, locking=lambda handle, mode, size: _flock(handle, 6)
)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
