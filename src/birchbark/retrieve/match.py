"""Which documents are candidates for ranking?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.reader import Index, Part


@dataclass(frozen=True, slots=True)
class Match:
    """Candidates hold at least `minimum` of the query's distinct terms, all of them if None.

    OR: any term. AND: every term. ALL: every document, be there a term or not (named below).
    A term counts as held if it is in any of the fields that are searched.
    """

    minimum: int | None = 1

    def __post_init__(self) -> None:
        if self.minimum is not None and self.minimum < 0:
            raise InputError("a match needs 0 terms or more", found=str(self.minimum))

    def candidates(
        self, part: Part, fields: Sequence[int], terms: Collection[str]
    ) -> NDArray[np.int64]:
        """Numbers of the candidates in `part`, rising; deleted documents are none."""
        held = np.zeros(part.documents, np.uint32)
        for term in sorted(terms):
            _count(held, [part.fields[number].postings(term) for number in fields])
        wanted = len(terms) if self.minimum is None else self.minimum
        matching = held >= wanted if terms or self.minimum == 0 else np.zeros(len(held), bool)
        if part.deleted is not None:
            matching &= ~part.deleted
        return np.flatnonzero(matching)


OR, AND, ALL = Match(1), Match(None), Match(0)


@dataclass(frozen=True, slots=True)
class Selection:
    """The candidates of one query: its match, its terms, and field → value they must have."""

    match: Match
    terms: Collection[str]
    filters: Mapping[str, str] = field(default_factory=dict)

    def candidates(self, index: Index, part: Part, fields: Iterable[str]) -> NDArray[np.int64]:
        """Numbers of the candidates in `part`, rising. fields: those that are searched.

        Raises InputError for a field that is not there, or not one to filter by.
        """
        searched = [index.field_number(name) for name in fields]
        numbers = self.match.candidates(part, searched, self.terms)
        for name, value in sorted(self.filters.items()):
            postings = part.fields[index.filter_number(name)].postings(value)
            having = np.zeros(0, np.uint32) if postings is None else postings.docs
            numbers = np.intersect1d(numbers, having, assume_unique=True)
        return numbers


def _count(held: NDArray[np.uint32], postings: list[Any]) -> None:
    """One more for each document in any of `postings`."""
    found = [p.docs for p in postings if p is not None]
    if len(found) == 1:
        held[found[0]] += 1
    elif found:
        held[np.unique(np.concatenate(found))] += 1


def parse_match(text: str) -> Match:
    """The match that `text` names: or, and, all, or the least number of terms."""
    named = {"or": OR, "and": AND, "all": ALL}
    if text in named:
        return named[text]
    if text.isdecimal():
        return Match(int(text))
    raise InputError(f"unknown match {text!r}", remedy="or, and, all, or a number of terms")
