"""What may one request ask for, and how much may be asked at once?"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from birchbark.errors import InputError

QUERY_CHARACTERS = 2_000
TEXT_CHARACTERS = 200_000  # of one text that is to be ranked
MOST_HITS = 200
MOST_DEPTH = 1_000
MOST_TEXTS = 1_000
MOST_DOCUMENTS = 1_000  # written by one request
ID_CHARACTERS = 512


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the whole service.

    budget: seconds that a search may take where it does not say; longest: where it does, and of
    everything else. at_work: searches that BERT reads for at a time; those who cannot hope for
    a turn in time are answered by the first stage alone, until `inside` are being answered in all;
    the next are refused. body: bytes of a request.
    """

    budget: float = 2.0
    longest: float = 30.0
    at_work: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    inside: int = 256
    body: int = 4_000_000

    def __post_init__(self) -> None:
        for name in ("budget", "longest", "at_work", "inside", "body"):
            if not getattr(self, name) > 0:
                found = str(getattr(self, name))
                raise InputError(f"{name} is out of range", wanted="above 0", found=found)
        if self.budget > self.longest:
            raise InputError(
                "a search may by default take longer than at most",
                wanted=f"{self.longest:g} s or less",
                found=f"{self.budget:g} s",
            )
