"""Which documents are candidates for ranking?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.arguments import is_count
from birchbark.errors import InputError, require_at_least
from birchbark.index.index import Index
from birchbark.index.part import Part
from birchbark.retrieve.filters import Filter


@dataclass(frozen=True, slots=True)
class Match:
    """How many of a query's terms a document must contain to be a candidate.

    A term counts if it occurs in any of the searched fields. The constants `OR` (any term), `AND`
    (every term) and `ALL` (every document, even without a term) are the most common values.

    Attributes:
        minimum: The smallest number of distinct query terms, 0 or more; None for all of them.
            Default 1.
    """

    minimum: int | None = 1

    def __post_init__(self) -> None:
        if self.minimum is not None:
            require_at_least("minimum of a match", self.minimum, 0)


OR = Match(1)
"""A candidate contains at least one of the query's terms."""

AND = Match(None)
"""A candidate contains every term of the query."""

ALL = Match(0)
"""Every document is a candidate."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which documents are candidates for one query.

    match: how many of `terms` a candidate contains. terms: the distinct terms of the query.
    filters: keyword fields and filters (see filters.py), all of which a candidate meets. allowed:
    name of a part → which of its documents may be candidates, bool (documents,); None if all may.
    """

    match: Match
    terms: Collection[str]
    filters: Sequence[tuple[str, str]] = ()
    allowed: Mapping[str, NDArray[np.bool_]] | None = None

    @property
    def min_terms(self) -> int:
        """The number of terms that a candidate contains; without terms, only ALL has candidates."""
        if not self.terms:
            return 0 if self.match == ALL else 1
        return len(self.terms) if self.match.minimum is None else self.match.minimum

    def excluded(self, index: Index, part: Part) -> NDArray[np.bool_]:
        """Return which documents of `part` are deleted, filtered out or not allowed.

        The result is bool (documents,), or empty if no document is excluded. Raises InputError for
        a malformed filter, and for one on a field that is not a keyword field.
        """
        excluded = np.zeros(0, bool) if part.deleted is None else part.deleted
        if self.allowed is not None:
            others = ~self.allowed[part.name]
            excluded = others | excluded if len(excluded) else others
        for name, value in self.filters:
            field = part.fields[index.filter_number(name)]
            others = ~Filter.parse(name, value).allowed(field)
            excluded = others | excluded if len(excluded) else others
        return excluded


def parse_match(text: str) -> Match:
    """Parse a match: `or`, `and`, `all`, or the minimum number of terms."""
    named = {"or": OR, "and": AND, "all": ALL}
    if text in named:
        return named[text]
    if is_count(text):
        return Match(int(text))
    raise InputError(f"unknown match {text!r}", wanted="or, and, all, or a number of terms")
