"""Which documents does a filter on a keyword field allow?

A filter is a line of text:

pdf               documents with this value; docs/* for all values that begin with docs/
pdf|html          with any of several
2024-03..2024-05  with a value from one to another, both included; either can be missing
!code             with none of these, or with no value
"a|b"             a value in quotation marks is taken as it is; "" is a quotation mark in it
"a|b"*            all values that begin with a|b

Of a date, a year, month or day (2024, 2024-05, 2024/5/1) is any time in it. In a range, numbers are
compared as numbers, everything else as text, of which the upper end need be only the beginning:
2024-03..2024-05 includes 2024-05-31.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.part import PartField, is_above
from birchbark.text.normal_form import composed

_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_PART = re.compile(rf"{_QUOTED.pattern}\*?(?=\||$)|[^|]+")
DATES = ("modified", "date")  # fields of which a value may be a part of a date
_DATE = re.compile(r"(\d{4})(?:[-/](\d\d?)(?:[-/](\d\d?))?)?", re.ASCII)
MOST_ALTERNATIVES = 1_000
_SYNTAX = re.compile(r'^[!"]|\||\.\.|\*$')


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that has been parsed.

    Attributes:
        values: Values, of which a document must have one.
        beginnings: Beginnings of such values.
        ranges: Lowest and highest of such values; an empty string for no limit.
        negated: Whether a document must have none of them instead.
    """

    values: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False

    @classmethod
    def parse(cls, name: str, text: str) -> Filter:
        """Parse a filter of the field `name`.

        Raises InputError for an empty one, or a malformed alternative or range.
        """
        text = composed(text)  # as the terms of keyword fields are
        negated = text.startswith("!")
        listed = text.removeprefix("!")
        parts = _PART.findall(listed)
        if not parts or "|".join(parts) != listed:
            raise InputError("not a filter", found=text, wanted="VALUE, or values joined by |")
        if len(parts) > MOST_ALTERNATIVES:
            raise InputError(
                "a filter has too many alternatives",
                wanted=f"at most {MOST_ALTERNATIVES:,}",
                found=f"{len(parts):,}",
            )
        values, beginnings, ranges = list[str](), list[str](), list[tuple[str, str]]()
        for part in dict.fromkeys(parts):
            low, dots, high = part.partition("..")
            quoted, is_beginning = part.removesuffix("*"), part.endswith("*")
            if _QUOTED.fullmatch(quoted):
                text_of = quoted[1:-1].replace('""', '"')
                (beginnings if is_beginning else values).append(text_of)
            elif part.startswith('"'):
                raise InputError("not a filter: a quotation mark without its end", found=text)
            elif part.startswith("!"):
                raise InputError(
                    "not a filter: ! is allowed only at the beginning, where it negates all "
                    "alternatives",
                    found=text,
                    remedy=f'quote a value that begins with !: "{part}"',
                )
            elif dots and (low or high):
                if name in DATES:
                    low, high = ((period(end) or ("", end))[1] for end in (low, high))
                if low and high and is_above(low, high):
                    raise InputError("not a filter: a range ends before it begins", found=text)
                ranges.append((low, high))
            elif name in DATES and (of_date := period(part)):
                beginnings.append(of_date[1])
                values.append(part)  # as the document may spell it: 2024/05/01
            elif is_beginning:
                beginnings.append(part[:-1])
            else:
                values.append(part)
        return cls(tuple(values), tuple(beginnings), tuple(ranges), negated)

    def allowed(self, field: PartField) -> NDArray[np.bool_]:
        """Return which documents of a part the filter allows, bool (documents,), also deleted."""
        documents = field.documents_with(self.values, self.beginnings, self.ranges)
        return ~documents if self.negated else documents


def period(text: str) -> tuple[str, str] | None:
    """Return the year, month or day before the one that `text` names, and this one itself."""
    found = _DATE.fullmatch(text)
    if not found:
        return None
    try:
        first = date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
        before = first - timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    size = len("2024-05-01" if found[3] else "2024-05" if found[2] else "2024")
    return before.isoformat()[:size], first.isoformat()[:size]


def filter_of(value: str, *, exact_date: bool = False) -> str:
    """Return the filter of this value: the value itself, unless it could mean something else.

    exact_date: whether a part of a date is to mean this value alone, not any time in it.
    """
    quoted = _SYNTAX.search(value) or (exact_date and period(value))
    return '"' + value.replace('"', '""') + '"' if quoted else value


def parse_filters(filters: Iterable[str]) -> dict[str, str]:
    """Parse texts of the form FIELD=FILTER into field → filter.

    Raises InputError for another form, and for two filters of one field.
    """
    found: dict[str, str] = {}
    for text in filters:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InputError("not a filter", found=text, wanted="FIELD=VALUE")
        new = Filter.parse(name, value)
        if found.setdefault(name, value) != value:
            before = Filter.parse(name, found[name])
            joined = ""
            if before.negated == new.negated and not (before.ranges or new.ranges):
                joined = f"{name}={found[name]}|{value.removeprefix('!')}"
            raise InputError(
                f"two filters of the field {name}",
                found=f"{found[name]} and {value}",
                remedy=joined and f"{joined} for both",
            )
    return found
