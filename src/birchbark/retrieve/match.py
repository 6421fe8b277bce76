"""Which documents are candidates for ranking?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.part_reader import Part
from birchbark.index.reader import Index


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


OR, AND, ALL = Match(1), Match(None), Match(0)


@dataclass(frozen=True, slots=True)
class Selection:
    """The candidates of one query: its match, its terms, and field → value they must have.

    only: part of the index → which of its documents may be candidates (documents,); None for all.
    """

    match: Match
    terms: Collection[str]
    filters: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, NDArray[np.bool_]] | None = None

    @property
    def least(self) -> int:
        """How many of its terms a candidate holds; with none, only ALL has candidates."""
        if not self.terms:
            return 0 if self.match == ALL else 1
        return len(self.terms) if self.match.minimum is None else self.match.minimum

    def excluded(self, index: Index, part: Part) -> NDArray[np.bool_]:
        """Deleted documents of `part` and those without the values, (documents,); or empty: none.

        Raises InputError for a field that is not there, or not one to filter by.
        """
        out = np.zeros(0, bool) if part.deleted is None else part.deleted
        if self.only is not None:
            out = ~self.only[part.name] | out if len(out) else ~self.only[part.name]
        for name, value in self.filters.items():
            postings = part.fields[index.filter_number(name)].postings(value)
            lacking = np.ones(part.documents, bool)
            if postings is not None:
                lacking[postings.docs] = False
            out = lacking | out if len(out) else lacking
        return out


def parse_match(text: str) -> Match:
    """The match that `text` names: or, and, all, or the least number of terms."""
    named = {"or": OR, "and": AND, "all": ALL}
    if text in named:
        return named[text]
    if text.isdecimal():
        return Match(int(text))
    raise InputError(f"unknown match {text!r}", remedy="or, and, all, or a number of terms")
