"""How large may a request be, how long may it take, and how many are served at once?"""

from __future__ import annotations

from dataclasses import dataclass, field

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.systems import usable_processors

MAX_QUERY_CHARACTERS = 2_000
MAX_TEXT_CHARACTERS = 200_000  # per text to rank
MAX_HITS = 200
MAX_DEPTH = 1_000
MAX_TEXTS = 1_000
MAX_DOCUMENTS = 1_000  # added per request
MAX_ID_CHARACTERS = 16_384  # of a path of 4,096 bytes, of which blanks become three characters each


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a service.

    Attributes:
        budget: Seconds that a search may take unless the request says otherwise. Defaults to 2.
        max_time: Seconds that any request may take. Defaults to 30.
        max_concurrent: Number of requests that may score with BERT at a time. A search that would
            wait too long for its turn is answered by the first stage and stored vectors. Defaults
            to the number of usable CPU cores.
        max_requests: Number of requests answered at a time; further ones are refused. Defaults to
            256.
        max_request_bytes: Maximum size of a request's body. Defaults to 4,000,000.
    """

    budget: float = defaults.BUDGET_SECONDS
    max_time: float = defaults.MAX_SECONDS
    max_concurrent: int = field(default_factory=usable_processors)
    max_requests: int = defaults.MAX_REQUESTS
    max_request_bytes: int = defaults.MAX_REQUEST_BYTES

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                value = str(getattr(self, name))
                raise InputError(f"{name} is out of range", wanted="above 0", found=value)
        if self.budget > self.max_time:
            raise InputError(
                "the default budget exceeds the maximum time",
                wanted=f"{self.max_time:g} s or less",
                found=f"{self.budget:g} s",
            )
