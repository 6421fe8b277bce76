"""Which errors can birchbark raise, and how is each one worded?

BirchbarkError             every error raised on purpose; the command line prints it and exits
├── InputError             a file, option or argument is not what was asked for (exit code 2)
├── ArtifactError          a stored directory is missing, damaged or from another version
├── CheckpointError        a model directory cannot be read, or is no model we know
│   └── UnknownHeadError   its head is none, or none that we know
├── TrainingError          a training cannot go on: its state is damaged, a disk is full
│   └── LossError          its loss is no number
├── LateError              a score is asked for that is not known when time is up
├── HubError               a model cannot be fetched: no network, no such model, a broken transfer
└── MissingPackageError    an optional package is needed and not installed

The service has four more of its own: for what is not there, what is too much at once, what can
never be read in time, and what it was not started for.
"""

from __future__ import annotations

from typing import Self


class BirchbarkError(Exception):
    """What went wrong, where, what was found, what was wanted, and what to do about it.

    Every part but the first may be left empty. The message reads
    ``where: what: expected WANTED, found FOUND (remedy)``.
    """

    exit_code = 1

    def __init__(
        self, what: str, *, where: str = "", found: str = "", wanted: str = "", remedy: str = ""
    ) -> None:
        self.what, self.where, self.found = what, where, found
        self.wanted, self.remedy = wanted, remedy
        super().__init__(what, where, found, wanted, remedy)

    def at(self, where: str) -> Self:
        """The same error, told where it happened, unless it knows already."""
        self.where = self.where or where
        return self

    def __str__(self) -> str:
        contrast = ", ".join(
            part
            for part in (
                f"expected {self.wanted}" if self.wanted else "",
                f"found {self.found}" if self.found else "",
            )
            if part
        )
        message = ": ".join(part for part in (self.where, self.what, contrast) if part)
        return f"{message} ({self.remedy})" if self.remedy else message


def first_line(error: BaseException) -> str:
    """The beginning of what others' code says, which may go on for pages."""
    return str(error).partition("\n")[0][:200]


class InputError(BirchbarkError):
    """A file, option or argument is not what was asked for."""

    exit_code = 2


class ArtifactError(BirchbarkError):
    """A stored directory is missing, damaged, in the way, or from another version."""


class CheckpointError(BirchbarkError):
    """A model directory cannot be read, or holds no model we know."""


class TrainingError(BirchbarkError):
    """A training cannot go on; what it last wrote is whole."""


class LossError(TrainingError):
    """A training's loss or gradient is no number: its settings are to blame."""


class LateError(BirchbarkError):
    """Something is asked for that is not known when time is up, and is not made up."""


class HubError(BirchbarkError):
    """A model cannot be fetched: the hub is not reached, refuses, or sends something damaged."""


class MissingPackageError(BirchbarkError):
    """An optional package is needed for this step and is not installed."""
