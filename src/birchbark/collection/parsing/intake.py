"""How are files read, and what happens to a bad record: is it raised, or skipped and counted?"""

from __future__ import annotations

import codecs
from collections import Counter
from dataclasses import dataclass, field

from birchbark import defaults
from birchbark.errors import InputError


def unknown_encoding(encoding: str) -> InputError:
    """Return the error for an encoding that Python does not know."""
    return InputError(f"unknown encoding {encoding!r}", remedy="try utf-8 or latin-1")


@dataclass(slots=True)
class Intake:
    """How to read files, and which records were skipped or noted while reading them.

    Attributes:
        skip_bad: Whether to skip bad records and collect their errors in `skipped`. If false, the
            first bad record is raised. Default None: the files of a folder that cannot be read are
            skipped, and other bad records are raised.
        encoding: The encoding of the files. Default `utf-8`.
        remedy: Advice for errors that do not have any. Default: empty.
        include: Patterns as in .gitignore of the files of a folder that are read. Default (): all.
        exclude: Patterns of the files and folders in a folder that are not read. Default ().
        follow_links: Whether files of a folder are read to which links lead out of it. Default
            False.
        skipped: The errors of the records that were skipped.
        notes: Observation → how often it occurred. These are not errors, but worth knowing.

    Raises:
        InputError: The encoding is unknown.
    """

    skip_bad: bool | None = None
    encoding: str = defaults.ENCODING
    remedy: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    follow_links: bool = False
    skipped: list[InputError] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        try:
            if codecs.lookup(self.encoding).name == defaults.ENCODING:
                self.encoding = defaults.ENCODING  # however it is spelt
        except (LookupError, ValueError):  # codecs raises either of them for an unknown name
            raise unknown_encoding(self.encoding) from None

    def bad(self, error: InputError) -> None:
        """Add the error of a bad record to `skipped` if bad records are skipped; else raise it."""
        self._skip_or_raise(error, skip=bool(self.skip_bad))

    def bad_file(self, error: InputError) -> None:
        """Do the same for a file of a folder, which is skipped unless `skip_bad` is false."""
        self._skip_or_raise(error, skip=self.skip_bad is not False)

    def _skip_or_raise(self, error: InputError, *, skip: bool) -> None:
        if not skip:
            error.remedy = error.remedy or self.remedy
            raise error
        # Not the frames that it passed, with all their values: there may be millions of errors.
        error.__context__ = error.__cause__ = None
        self.skipped.append(error.with_traceback(None))

    def note(self, text: str) -> None:
        """Count an observation, which the user sees once with its count."""
        self.notes[text] += 1
