"""How is a file of a folder opened, so that nothing outside of the folder is read in its place?

Between a look at a name and its use, a link may be put in its place, or in that of a folder on the
way. Each name is therefore opened relative to the folder that was opened before, without following
a link, and what was opened is checked. Links are read and followed here, within the folder.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from birchbark.collection.parsing.lines import OpenFile
from birchbark.errors import InputError

MOST_LINKS = 40  # on the way to a file, as in Linux
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe is opened without waiting for a writer


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
        handle = os.open(root / below, FILE)
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


def open_folder(root: Path, below: Path) -> int:
    """Return a descriptor of a folder below `root`, or of `root` itself; raise as `open_file`."""
    return _open(root, below, FOLDER)


def _open(root: Path, below: Path, flags: int) -> int:
    """Return a descriptor of what is below `root`. At most two are open at a time."""
    names, position, links = list(below.parts), 0, 0
    if below.is_absolute() or ".." in names:
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
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=at)
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
