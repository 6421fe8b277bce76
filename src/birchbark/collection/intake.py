"""What happens to a bad record: is it raised as an error, or skipped and counted?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from birchbark import defaults
from birchbark.errors import InputError


@dataclass(slots=True)
class Intake:
    """How to read files, and which records were skipped or noted while reading them.

    Attributes:
        skip_bad: Whether to skip bad records and collect their errors in `skipped`. If false, the
            first bad record is raised. Default False.
        encoding: The encoding of the files. Default `utf-8`.
        remedy: Advice for errors that do not have any. Default: empty.
        skipped: The errors of the records that were skipped.
        notes: Observation → how often it occurred. These are not errors, but worth knowing.
    """

    skip_bad: bool = False
    encoding: str = defaults.ENCODING
    remedy: str = ""
    skipped: list[InputError] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def bad(self, error: InputError) -> None:
        """Add the error of a bad record to `skipped` if bad records are skipped; else raise it."""
        if not self.skip_bad:
            error.remedy = error.remedy or self.remedy
            raise error
        self.skipped.append(error)

    def note(self, text: str) -> None:
        """Count an observation, which the user sees once with its count."""
        self.notes[text] += 1
