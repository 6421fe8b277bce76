"""Which errors does birchbark raise, and how are their messages worded?

BirchbarkError             every expected error; the command line prints it and exits
├── InputError             invalid file, option or argument (exit code 2)
│   └── UnreadableError    a file cannot be read now, whatever it contains
├── ArtifactError          a stored directory is missing, damaged, locked or of another version
│   └── OutdatedError      it has been changed since it was read
├── CheckpointError        a model directory cannot be read, or holds no supported model
│   └── UnknownHeadError   the model has no head, or an unsupported one
├── TrainingError          training cannot continue: damaged state, full disk
│   └── LossError          the loss is not finite
├── DeadlineError          a score was not ready by the deadline
├── HubError               a model cannot be downloaded: no network, no such model, broken transfer
└── MissingPackageError    an optional package is not installed

`birchbark.serve` adds errors for HTTP responses: not found, too large, busy, disabled.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

MAX_QUOTED = 200  # characters quoted of other libraries' messages
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
_CLAUSE = re.compile(r"(?:;|,) (?:or )?")


class BirchbarkError(Exception):
    """Base class of all expected errors: invalid input, damaged files, missing packages.

    The message reads ``WHERE: WHAT: expected WANTED, found FOUND (REMEDY)``, without the parts that
    are empty. The command line prints it and exits with `exit_code`.

    Attributes:
        exit_code: Exit code of the command line: 1, or 2 for invalid input.
        what: What went wrong.
        where: File, line, key or model that the error concerns. Default: empty.
        found: What was found instead of `wanted`. Default: empty.
        wanted: What would have been valid. Default: empty.
        remedy: What the user can do about it. Default: empty.
    """

    exit_code = 1

    def __init__(
        self, what: str, *, where: str = "", found: str = "", wanted: str = "", remedy: str = ""
    ) -> None:
        self.what, self.where, self.found = what, where, found
        self.wanted, self.remedy = wanted, remedy
        super().__init__(what, where, found, wanted, remedy)

    def at(self, where: str) -> Self:
        """Set `where` unless it is already set, and return the same error.

        Args:
            where: File, line, key or model that the error concerns.
        """
        self.where = self.where or where
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Let the error be sent from one process to another."""
        return _error, (type(self), self.what, self.where, self.found, self.wanted, self.remedy)

    def __str__(self) -> str:
        contrast = ", ".join(
            part
            for part in (
                f"expected {self.wanted}" if self.wanted else "",
                f"found {self.found}" if self.found else "",
            )
            if part
        )
        where = self.where.replace("\n", "\\n")  # a file's name must not look like another line
        message = ": ".join(part for part in (where, self.what, contrast) if part)
        return f"{message} ({self.remedy})" if self.remedy else message


# What the operating system refuses for lack of something, not because of what a file contains.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.EAGAIN}
_REFUSED = {errno.EACCES, errno.EPERM}


def is_damage(error: Exception) -> bool:
    """Whether an error in reading stored files can come from damage to them.

    A full or read-only disk, too many open files, missing permissions and a failing device say
    nothing about what the files contain.
    """
    refusals = FULL | _EXHAUSTED | _REFUSED
    return not (isinstance(error, OSError) and error.errno in refusals)


@contextmanager
def reporting_damage(what: str, where: object, remedy: str) -> Iterator[None]:
    """Turn errors that only damage can cause into an ArtifactError: `damaged WHAT`, at `where`."""
    try:
        yield
    except (OSError, ValueError, IndexError) as error:
        if not is_damage(error):
            raise
        message = f"damaged {what}: {error}"
        if isinstance(error, OSError) and error.filename is not None:  # else, its path is in it
            message = f"damaged {what}: {error.strerror}: {Path(error.filename).name}"
        raise ArtifactError(message, where=str(where), remedy=remedy) from error


def applicable(remedy: str, known: Iterable[str]) -> str:
    """Return the clauses of a remedy before the first with an option that is not `known`.

    Errors name options, which not every command has that can end with them, and no request over
    HTTP. Clauses end at a semicolon or comma. A clause that names another command is kept.
    """
    end = 0
    for clause in [*_CLAUSE.finditer(remedy), None]:
        stop = clause.start() if clause else len(remedy)
        text = remedy[end:stop]
        options = set() if re.search(r"birchbark|pip ", text) else set(_OPTION.findall(text))
        if not options <= set(known):
            return remedy[:end].rstrip(";, ").removesuffix(" or").rstrip(";, ")
        end = clause.end() if clause else stop
    return remedy


def first_line(error: BaseException) -> str:
    """Return the first line of another library's message, cut to MAX_QUOTED characters."""
    return str(error).partition("\n")[0][:MAX_QUOTED]


def _error(
    kind: type[BirchbarkError], what: str, where: str, found: str, wanted: str, remedy: str
) -> BirchbarkError:
    return kind(what, where=where, found=found, wanted=wanted, remedy=remedy)


class InputError(BirchbarkError):
    """A file, option or argument is invalid; the exit code is 2.

    For the attributes see BirchbarkError.
    """

    exit_code = 2


class UnreadableError(InputError):
    """A file cannot be read now, for a reason that is not in its bytes; later, it may be readable.

    Such as a missing permission, a lock, a failing device or a limit of time.
    """


class UnknownDocumentError(InputError):
    """No document has this id."""


class ArtifactError(BirchbarkError):
    """A stored directory is missing, damaged, locked, or of another version."""


class OutdatedError(ArtifactError):
    """A stored directory has been changed since what is to be written was derived from it."""


class CheckpointError(BirchbarkError):
    """A model directory cannot be read, or holds no supported model; the exit code is 2."""

    exit_code = 2


class TrainingError(BirchbarkError):
    """Training cannot continue; the last saved state is intact."""


class LossError(TrainingError):
    """The loss or the gradient is not finite; unsuitable settings are the likely cause."""


class DeadlineError(BirchbarkError):
    """A score was not ready by the deadline."""


class HubError(BirchbarkError):
    """A model cannot be downloaded: the hub is unreachable, refuses, or sends damaged data."""


class MissingPackageError(BirchbarkError):
    """An optional package that this step needs is not installed."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import a library in this block; MissingPackageError names the extra that installs it."""
    try:
        yield
    except ImportError as missing:
        raise MissingPackageError(
            f"{missing.name} is not installed", remedy=f"pip install 'birchbark[{name}]'"
        ) from missing


def require_at_least(name: str, value: int, minimum: int) -> None:
    """Raise InputError unless `value` is a whole number, `minimum` or more.

    It must fit into 32 bits. name: what the value is, as the message calls it.
    """
    known: object = value
    if not isinstance(known, Integral):
        raise InputError(f"{name} is not a whole number", found=repr(value))
    if not minimum <= value < 1 << 31:
        wanted = f"{minimum} or more" if not value >= minimum else f"below {1 << 31:,}"
        raise InputError(f"{name} is out of range", wanted=wanted, found=str(value))


def require_number(name: str, value: float) -> None:
    """Raise InputError unless `value` is a number."""
    known: object = value
    if not isinstance(known, Real):
        raise InputError(f"{name} is not a number", found=repr(value))


def require_share(name: str, value: float) -> None:
    """Raise InputError unless `value` is 0 to 1.

    name: what the value is, as the message calls it.
    """
    require_number(name, value)
    if not 0 <= value <= 1:
        raise InputError(f"{name} is out of range", wanted="0 to 1", found=str(value))
