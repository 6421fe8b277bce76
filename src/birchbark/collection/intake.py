"""What happens to a record that cannot be read, and to the count of those that can?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from birchbark.errors import InputError


@dataclass(slots=True)
class Intake:
    """Takes in what readers find; nothing is passed over without a trace here.

    skip_bad: keep going after a bad record (it is counted and its error kept in `skipped`);
    otherwise the first one is raised.
    encoding: of the files to be read.
    remedy: advice about a bad record, where its error has none of its own.
    notes: things that are no fault but that the user should know, with how often they occurred.
    """

    skip_bad: bool = False
    encoding: str = "utf-8"
    remedy: str = ""
    skipped: list[InputError] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def bad(self, error: InputError) -> None:
        """A record is unusable: raise `error`, or count it where bad ones are to be skipped."""
        if not self.skip_bad:
            error.remedy = error.remedy or self.remedy
            raise error
        self.skipped.append(error)

    def note(self, text: str) -> None:
        """Remember something the user should be told once, however often it occurs."""
        self.notes[text] += 1
