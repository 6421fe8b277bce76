"""How many of a search's candidates have which values of the fields that searches can filter by?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from birchbark.records import Document
from birchbark.retrieve.filters import filter_of

MAX_VALUES = 12  # of a field
DATE = re.compile(r"(\d{4})-\d\d")


@dataclass(frozen=True, slots=True)
class Facet:
    """A field, and how many documents have each of its values.

    Attributes:
        field: The name of the field.
        values: Filter (see retrieve/filters.py) and count, most frequent first; for dates, of all
            dates of a year. At most twelve.
        others: Number of further values, which fewer documents have.
    """

    field: str
    values: tuple[tuple[str, int], ...]
    others: int = 0


def count_facets(documents: Sequence[Document], keywords: Iterable[str]) -> list[Facet]:
    """Return the facets that divide the documents, in the order of `keywords`.

    Left out are fields with one value only, and those in which all values differ, such as paths.
    """
    facets = []
    for field in keywords:
        present = [value for d in documents if (value := d.fields.get(field, ""))]
        counts = Counter(map(_as_filter, present))
        if len(counts) > 1 and max(counts.values()) > 1:
            ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            shown = tuple(ordered[:MAX_VALUES])
            facets.append(Facet(field, shown, len(ordered) - len(shown)))
    return facets


def _as_filter(value: str) -> str:
    """Return the filter that selects a value, or the year of a date."""
    date = DATE.match(value)
    return f"{date[1]}*" if date else filter_of(value)
