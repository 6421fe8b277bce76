"""How is a file of a folder opened, so that nothing outside of the folder is read in its place?

Between a look at a name and its use, a link may be put in its place, or in that of a folder on the
way. Each name is therefore opened relative to the folder that was opened before, without following
a link, and what was opened is checked. Links are read and followed here, within the folder. Where
folders cannot be opened (Windows), names are checked before and after a file is opened.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from birchbark.collection.parsing.lines import OpenFile
from birchbark.errors import InputError
from birchbark.systems import BINARY, HAS_FOLDER_HANDLES, NO_FOLLOW

MOST_LINKS = 40  # on the way to a file, as in Linux
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a pipe is opened without waiting for a writer


class OutsideError(InputError):
    """A link, or a name such as `..`, leads out of the folder."""


def open_file(root: Path, below: Path, *, follow_links: bool = False) -> io.BufferedReader:
    """Open a plain file for reading bytes; a read never waits.

    root: the folder. below: the path of the file below it, of any length. follow_links: whether
    links may lead out of the folder.

    Raises OutsideError if one does that must not, InputError for what is no plain file, and
    OSError.
    """
    try:
        handle = _open(root, below, FILE)
    except OutsideError:
        if not follow_links:
            raise
        handle = os.open(root / below, FILE | BINARY)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InputError("is not a plain file", where=str(root / below))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def open_files_in(root: Path, *, follow_links: bool = False) -> OpenFile:
    """Return a function that opens plain files at paths that begin with `root`; see `open_file`."""
    return lambda path: open_file(root, path.relative_to(root), follow_links=follow_links)


@contextmanager
def open_folder(root: Path, below: Path) -> Iterator[int | str]:
    """Yield what os.scandir reads a folder by: `root` or one below it; raise as `open_file`."""
    if not HAS_FOLDER_HANDLES:
        yield _real_path(root, below)
        return
    handle = _open(root, below, FOLDER)
    try:
        yield handle
    finally:
        os.close(handle)


def _real_path(root: Path, below: Path) -> str:
    """Return the path of what is below `root`, without links."""
    base, real = os.path.realpath(root), os.path.realpath(root / below)
    if _leads_out(below) or not Path(real).is_relative_to(base):
        where = str(root / below)
        raise OutsideError("a link leads out of the folder", where=where, found=real)
    return real


def _leads_out(below: Path) -> bool:
    return below.is_absolute() or ".." in below.parts


def _open_looking_twice(root: Path, below: Path) -> int:
    """Return a descriptor of a file below `root`, where folders have no descriptors."""
    real = _real_path(root, below)
    handle = os.open(real, FILE | BINARY)
    try:
        if not os.path.samestat(os.fstat(handle), os.stat(_real_path(root, below))):  # noqa: PTH116
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(root / below))
    except BaseException:
        os.close(handle)
        raise
    return handle


def _open(root: Path, below: Path, flags: int) -> int:
    """Return a descriptor of what is below `root`. At most two are open at a time."""
    if not HAS_FOLDER_HANDLES:
        return _open_looking_twice(root, below)
    names, position, links = list(below.parts), 0, 0
    if _leads_out(below):
        raise OutsideError("a name leads out of the folder", where=str(root / below))
    at = os.open(root, FOLDER)
    try:
        while position < len(names):
            kind = flags if position == len(names) - 1 else FOLDER
            found = _open_name(names[position], kind, at)
            if isinstance(found, str):
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(root / below))
                names = [*_led_to(root, names[: position + 1], found), *names[position + 1 :]]
                found, position = os.open(root, FOLDER), -1  # begin again
            os.close(at)
            at, position = found, position + 1
        return at
    except BaseException:
        os.close(at)
        raise


def _open_name(name: str, flags: int, at: int) -> int | str:
    """Open a name in the folder `at`; of a link, return what is in it."""
    try:
        return os.open(name, flags | NO_FOLLOW, dir_fd=at)
    except OSError as error:
        try:
            return os.readlink(name, dir_fd=at)
        except OSError:
            raise error from None


def _led_to(root: Path, link: Sequence[str], target: str) -> tuple[str, ...]:
    """Return the names below `root` to which a link leads; OutsideError if it leads elsewhere.

    link: its own names. target: what is in it; `..` takes away the name before, even that of a
    link.
    """
    for base in map(Path, (os.path.abspath(root), os.path.realpath(root))):  # noqa: PTH100
        path = Path(os.path.normpath(base.joinpath(*link[:-1], target)))
        if path.is_relative_to(base):
            return path.relative_to(base).parts
    where = str(root.joinpath(*link))
    raise OutsideError("a link leads out of the folder", where=where, found=target)
