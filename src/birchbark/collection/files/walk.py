"""Which files of a folder are read, and in which order?"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from birchbark.collection.files.ignore_patterns import IgnorePatterns
from birchbark.collection.files.open_below import (
    OutsideError,
    open_file,
    open_files_in,
    open_folder,
)
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import OpenFile, open_by_name
from birchbark.errors import InputError, UnreadableError
from birchbark.systems import HAS_FOLDER_HANDLES

GITIGNORE = ".gitignore"
MOST_BYTES = 50_000  # of a .gitignore file, whose patterns are compared with each name below it
MOST_PATTERNS = 1_000  # that are compared with a name, of all .gitignore files above it
MOST_LEVELS = 200  # of folders: each is opened from the top one
NO_FILE = "link to a folder, broken link or special file not read"
OUTSIDE = "link out of the folder not read (birchbark index build --follow-links reads it)"
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
Ignores = tuple[tuple[Path, IgnorePatterns], ...]  # of .gitignore files, the outermost first


class FoundFile(NamedTuple):
    """A file to read.

    path: below the folder. status: its size and times, of a link those of the file that it leads
    to; or why they are not known.
    """

    path: Path
    status: os.stat_result | UnreadableError


class _Entry(NamedTuple):
    name: str
    is_folder: bool
    is_link: bool
    status: os.stat_result | UnreadableError | None  # None for a link or a special file


class _Folder(NamedTuple):
    """A folder that the walk is in: its path below the top one, and the entries to come."""

    below: Path
    entries: Iterator[_Entry]
    ignores: Ignores


def walk(
    folder: Path,
    intake: Intake,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    unreadable: list[Path] | None = None,
    *,
    follow_links: bool = False,
) -> Iterator[FoundFile]:
    """Yield the files below `folder` to read, in order of path.

    Left out, and noted in `intake`: hidden files and folders, links to folders, special files, what
    a .gitignore file in the folder or below it leaves out, what the patterns leave out, and folders
    below more than MOST_LEVELS others. One folder is open at a time.

    Args:
        folder: The folder.
        intake: Is told what was left out.
        include: Patterns as in .gitignore files; if there are any, only files that match one of
            them are read.
        exclude: Patterns of files and folders that are not read.
        unreadable: Is extended by the folders of which it is not known what is in them, since they
            or their .gitignore files could not be read.
        follow_links: Whether files are read to which links lead out of the folder.

    Raises:
        InputError: For an invalid pattern.
    """
    included, excluded = _patterns(include), _patterns(exclude)
    lost = [] if unreadable is None else unreadable
    within = [_read(folder, Path(), (), intake, lost)]
    while within:
        below, entries, ignores = within[-1]
        entry = next(entries, None)
        if entry is None:
            within.pop()
            continue
        path = below / entry.name
        noun = "folder" if entry.is_folder else "file"
        if entry.name.startswith("."):
            intake.note(f"hidden {noun} not read")
        elif _ignored(path, entry.is_folder, ignores):
            intake.note(f"{noun} not read, because of .gitignore")
        elif excluded.decide(path, is_folder=entry.is_folder):
            intake.note(f"excluded {noun} not read")
        elif entry.is_folder and len(within) > MOST_LEVELS:
            intake.note(f"folder below {MOST_LEVELS} others not read")
        elif entry.is_folder:
            within.append(_read(folder, path, ignores, intake, lost))
        elif len(included) and not included.select(path):
            intake.note("file that matches no --include pattern not read")
        elif isinstance(found := _status(folder, path, entry, follow_links), str):
            intake.note(found)
        else:
            yield FoundFile(path, found)


def chosen_files(path: Path, intake: Intake) -> Iterator[tuple[Path, OpenFile]]:
    """Yield `path` itself if it is a file, else the files below it that the intake includes.

    Each with what opens it, and of a folder nothing outside of it.
    """
    if not path.is_dir():
        yield path, open_by_name
        return
    opening = open_files_in(path, follow_links=intake.follow_links)
    found = walk(path, intake, intake.include, intake.exclude, follow_links=intake.follow_links)
    for file in found:
        yield path / file.path, opening


def _read(
    folder: Path, below: Path, ignores: Ignores, intake: Intake, unreadable: list[Path]
) -> _Folder:
    """Read the entries of the folder `below` the top one, and its .gitignore file."""
    nothing, where = _Folder(below, iter(()), ignores), folder / below
    try:
        entries = _entries(folder, below)
        if any(entry.name == GITIGNORE and not entry.is_folder for entry in entries):
            where = where / GITIGNORE
            patterns = _read_gitignore(folder, below / GITIGNORE, intake)
            if sum(map(len, (patterns, *(more for _, more in ignores)))) <= MOST_PATTERNS:
                ignores = (*ignores, (below, patterns))
            else:
                intake.note(
                    f"{GITIGNORE} not read, with which there are over {MOST_PATTERNS:,} patterns"
                )
    except (FileNotFoundError, NotADirectoryError, OutsideError):
        return nothing  # deleted or replaced since its parent was read
    except OSError as error:
        unreadable.append(below)
        intake.bad_file(_unreadable(error, where))
        return nothing
    return _Folder(below, iter(entries), ignores)


def _entries(folder: Path, below: Path) -> list[_Entry]:
    """Return what is in a folder, in the order of names."""
    with open_folder(folder, below) as opened, os.scandir(opened) as found:
        return sorted((_entry(entry, folder / below) for entry in found), key=attrgetter("name"))


def _entry(entry: os.DirEntry[str], folder: Path) -> _Entry:
    try:
        is_file = entry.is_file(follow_symlinks=False)
        status = _status_of(entry) if is_file else None
        is_folder = entry.is_dir(follow_symlinks=False)
        return _Entry(entry.name, is_folder, entry.is_symlink(), status)
    except OSError as error:
        return _Entry(entry.name, False, False, _unreadable(error, folder / entry.name))


def _status_of(entry: os.DirEntry[str]) -> os.stat_result:
    """Return the status of a file; Windows keeps none of its numbers in the folder."""
    if HAS_FOLDER_HANDLES:
        return entry.stat(follow_symlinks=False)
    return os.stat(entry.path, follow_symlinks=False)  # noqa: PTH116


def _status(
    folder: Path, path: Path, entry: _Entry, follow_links: bool
) -> os.stat_result | UnreadableError | str:
    """Return the status of a file or of the one that a link leads to; or why it is not read."""
    if not entry.is_link:
        return entry.status or NO_FILE
    try:
        with open_file(folder, path, follow_links=follow_links) as file:
            return os.fstat(file.fileno())
    except OutsideError:
        return OUTSIDE
    except InputError:
        return NO_FILE
    except OSError as error:
        return NO_FILE if error.errno in _GONE else _unreadable(error, folder / path)


def _unreadable(error: OSError, path: Path) -> UnreadableError:
    return UnreadableError(f"cannot be read: {error.strerror}", where=str(path))


def _ignored(path: Path, is_folder: bool, ignores: Ignores) -> bool:
    """Return whether .gitignore files leave out `path`; the innermost one with a match decides."""
    for folder, patterns in reversed(ignores):
        decision = patterns.decide(path.relative_to(folder), is_folder=is_folder)
        if decision is not None:
            return decision
    return False


def _read_gitignore(folder: Path, path: Path, intake: Intake) -> IgnorePatterns:
    """Return the valid patterns of a file, as git does.

    None of what is no file of the folder, and of one with more than MOST_BYTES.
    """
    text = b""
    try:
        with open_file(folder, path) as file:
            text = file.read(MOST_BYTES + 1) or b""
    except InputError:
        intake.note(f"{GITIGNORE} that is no file of the folder not read")
    if len(text) > MOST_BYTES:
        intake.note(f"{GITIGNORE} with more than {MOST_BYTES:,} bytes not read")
        text = b""
    return IgnorePatterns.of_file(text.decode(errors="replace"))


def _patterns(lines: Sequence[str]) -> IgnorePatterns:
    try:
        return IgnorePatterns.of_lines(lines)
    except ValueError as bad:
        wanted = "a pattern such as *.md or drafts/"
        raise InputError(f"invalid pattern {str(bad)!r}", wanted=wanted) from None
