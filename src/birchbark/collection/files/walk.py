"""Which files of a folder are read, and in which order?"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError, UnreadableError

GITIGNORE = ".gitignore"


def walk(
    folder: Path,
    intake: Intake,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    unreadable: list[Path] | None = None,
) -> Iterator[Path]:
    """Yield the paths below `folder` of the files to read, relative to it, in order of path.

    Left out, and noted in `intake`: hidden files and folders, links to folders, special files, what
    a .gitignore file in the folder or below it leaves out, and what the patterns leave out.

    Args:
        folder: The folder.
        intake: Is told what was left out.
        include: Patterns as in .gitignore files; if there are any, only files that match one of
            them are read.
        exclude: Patterns of files and folders that are not read.
        unreadable: Is extended by the folders of which it is not known what is in them, since they
            or their .gitignore files could not be read.

    Raises:
        InputError: For an invalid pattern.
    """
    included, excluded = _patterns(include), _patterns(exclude)
    lost = [] if unreadable is None else unreadable
    yield from _walk(folder, Path(), intake, (included, excluded), lost)


def chosen_files(path: Path, intake: Intake) -> Iterator[Path]:
    """Yield `path` itself if it is a file, else the files below it that the intake includes."""
    if not path.is_dir():
        yield path
        return
    for file in walk(path, intake, intake.include, intake.exclude):
        yield path / file


def _walk(
    folder: Path,
    below: Path,
    intake: Intake,
    patterns: tuple[GitIgnoreSpec, GitIgnoreSpec],
    unreadable: list[Path],
    ignores: tuple[tuple[Path, GitIgnoreSpec], ...] = (),
) -> Iterator[Path]:
    """Walk through the folder `below` the top one. ignores: .gitignore files, outermost first."""
    included, excluded = patterns
    try:
        entries = sorted(os.scandir(folder / below), key=lambda entry: entry.name)
        if any(entry.name == GITIGNORE and _is_file(entry) for entry in entries):
            ignores = (*ignores, (below, _read_gitignore(folder / below / GITIGNORE)))
    except (FileNotFoundError, NotADirectoryError):  # deleted since its parent was read
        return
    except OSError as error:
        unreadable.append(below)
        what = f"cannot be read: {error.strerror}"
        intake.bad_file(UnreadableError(what, where=error.filename or str(folder / below)))
        return
    for entry in entries:
        relative = below / entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        name = f"{relative.as_posix()}/" if is_folder else relative.as_posix()
        noun = "folder" if is_folder else "file"
        if entry.name.startswith("."):
            intake.note(f"hidden {noun} not read")
        elif not is_folder and not _is_file(entry):
            intake.note("link to a folder, broken link or special file not read")
        elif _ignored(relative, is_folder, ignores):
            intake.note(f"{noun} not read, because of .gitignore")
        elif excluded.match_file(name):
            intake.note(f"excluded {noun} not read")
        elif is_folder:
            yield from _walk(folder, relative, intake, patterns, unreadable, ignores)
        elif len(included) and not included.match_file(name):
            intake.note("file that matches no --include pattern not read")
        else:
            yield relative


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file or a link to one; true if it cannot be found out."""
    try:
        return entry.is_file()
    except OSError as error:  # ELOOP: a link to itself
        return error.errno != errno.ELOOP


def _ignored(path: Path, is_folder: bool, ignores: tuple[tuple[Path, GitIgnoreSpec], ...]) -> bool:
    """Return whether .gitignore files leave out `path`; the innermost one with a match decides."""
    for folder, spec in reversed(ignores):
        name = path.relative_to(folder).as_posix() + "/" * is_folder
        if (matched := spec.check_file(name).include) is not None:
            return matched
    return False


def _read_gitignore(file: Path) -> GitIgnoreSpec:
    """Return the valid patterns of a file, as git does."""
    lines = file.read_text("utf-8", errors="replace").splitlines()
    return GitIgnoreSpec.from_lines([line for line in lines if _is_valid(line)])


def _patterns(lines: Sequence[str]) -> GitIgnoreSpec:
    if bad := [line for line in lines if not line.strip() or not _is_valid(line)]:
        raise InputError(f"invalid pattern {bad[0]!r}", wanted="a pattern such as *.md or drafts/")
    return GitIgnoreSpec.from_lines(lines)


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
